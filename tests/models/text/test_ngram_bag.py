"""A bag of words and runs of words, against sums over its runs one by one."""

import pytest
import torch
from torch import Tensor

from foveate.models.text.ngram_bag import FACTOR, NgramBag, NgramBagConfig

BUCKETS, WIDTH, LABELS = 101, 7, 3


def bag(order: int) -> NgramBag:
    torch.manual_seed(1)
    model = NgramBag(NgramBagConfig(vocabulary=19, classes=LABELS, width=WIDTH, order=order, buckets=BUCKETS)).eval()
    for table in model.runs:
        torch.nn.init.normal_(table.weight)  # type: ignore[arg-type]
    return model


def by_runs(model: NgramBag, text: list[int]) -> Tensor:
    """Every run of the text looked up by itself; of words, a mean."""
    total = sum(model.embedding.weight[token] for token in text)
    for length, table in enumerate(model.runs, start=2):
        for end in range(length - 1, len(text)):
            number = text[end]
            for back in range(1, length):
                number = (number * FACTOR + text[end - back]) % BUCKETS
            total = total + table.weight[number]  # type: ignore[operator]
    return model.output(total / len(text))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_all_runs_of_each_text(order: int) -> None:
    model, texts = bag(order), [[4, 9, 4, 18, 7], [5], [3, 11]]
    tokens = torch.tensor([text + [2] * (5 - len(text)) for text in texts])
    found = model(tokens, torch.tensor([len(text) for text in texts])).logits[:, 0]
    expected = torch.stack([by_runs(model, text) for text in texts])
    torch.testing.assert_close(found, expected)


def test_a_run_that_was_never_learned_from_says_nothing() -> None:
    model = NgramBag(NgramBagConfig(vocabulary=19, classes=LABELS, width=WIDTH, buckets=BUCKETS)).eval()
    lengths = torch.tensor([4])
    one, other = (model(torch.tensor([text]), lengths).logits for text in ([4, 9, 5, 6], [9, 4, 6, 5]))
    torch.testing.assert_close(one, other)
