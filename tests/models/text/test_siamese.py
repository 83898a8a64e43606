"""Siamese networks: what their decision depends on, and that their weights are shared as told."""

import pytest
import torch
from torch import Tensor, nn

import foveate
from foveate.errors import UserError
from foveate.sight import look

SIZES = {"src_vocab": 31, "tgt_vocab": 31, "width": 12, "embedding": 7, "dropout": 0.0}


def siamese(**changes) -> nn.Module:
    torch.manual_seed(7)
    return foveate.create("siamese-attentive", **{**SIZES, **changes}).eval()


def bag(**changes) -> nn.Module:
    torch.manual_seed(7)
    return foveate.create("siamese-bag", src_vocab=31, tgt_vocab=31, width=12, dropout=0.0, **changes).eval()


@pytest.fixture
def inputs() -> dict[str, Tensor]:
    """Two pairs: of 5 and 3 tokens, and of 2 and 4."""
    return {
        "source": torch.tensor([[4, 5, 6, 7, 2], [8, 2, 0, 0, 0]]),
        "source_lengths": torch.tensor([5, 2]),
        "target": torch.tensor([[9, 10, 2, 0], [11, 12, 13, 2]]),
        "target_lengths": torch.tensor([3, 4]),
    }


def test_the_order_of_the_texts_does_not_matter_to_one_encoder(inputs) -> None:
    swapped = {
        "source": inputs["target"],
        "source_lengths": inputs["target_lengths"],
        "target": inputs["source"],
        "target_lengths": inputs["source_lengths"],
    }
    model = siamese()
    assert model.source_encoder is model.target_encoder
    torch.testing.assert_close(model(**inputs).logits, model(**swapped).logits)
    model = siamese(one_encoder=False)
    assert not torch.allclose(model(**inputs).logits, model(**swapped).logits)


def test_equal_texts_have_no_difference(inputs) -> None:
    twice = {f"{side}{part}": inputs[f"source{part}"] for side in ("source", "target") for part in ("", "_lengths")}
    model, seen = siamese(), []
    model.compare.inner.register_forward_hook(lambda module, given, output: seen.append(given[0]))
    with torch.no_grad():
        model(**twice)
    product, difference = seen[0].chunk(2, -1)
    assert bool((product >= 0).all())
    assert float(difference.abs().max()) == 0


@pytest.mark.parametrize("compare", ["features", "biaffine", "cosine"])
def test_each_source_beside_another_target_too(compare: str, inputs) -> None:
    model, others = siamese(compare=compare), torch.tensor([1, 0])
    crossed = {name: value[others] if name.startswith("target") else value for name, value in inputs.items()}
    expected = torch.cat([model(**inputs).logits, model(**crossed).logits], 1)
    torch.testing.assert_close(model(**inputs, others=others).logits, expected)


def test_a_bag_of_words_reads_no_order_and_looks_at_words(inputs) -> None:
    model = bag()
    shuffled = inputs | {"source": torch.tensor([[7, 2, 5, 4, 6], [2, 8, 0, 0, 0]])}
    with torch.no_grad(), look(model) as sight:
        logits = model(**inputs).logits
    torch.testing.assert_close(model(**shuffled).logits, logits)
    assert [sight[site].weights().shape for site in sight.sites] == [(2, 1, 1, 5), (2, 1, 1, 4)]
    same = {f"{side}{part}": inputs[f"source{part}"] for side in ("source", "target") for part in ("", "_lengths")}
    yes = model.compare.scale + model.compare.bias  # a cosine of 1
    torch.testing.assert_close(model(**same).logits[:, 0], torch.stack([0 * yes, yes]).expand(2, 2))


def test_one_encoder_needs_one_vocabulary() -> None:
    with pytest.raises(UserError, match="one vocabulary, but theirs have 31 and 29 entries"):
        siamese(tgt_vocab=29)


def test_a_bag_of_words_has_no_last_state() -> None:
    with pytest.raises(UserError, match="a bag of words has no last state"):
        bag(pooling="last")


def test_where_it_looks(inputs) -> None:
    with torch.no_grad(), look(model := siamese()) as sight:
        model(**inputs)
    first, second = (sight[site].weights() for site in sight.sites)
    assert first.shape == (2, 1, 1, 5)
    assert second.shape == (2, 1, 1, 4)
    assert first[1, 0, 0, 2:].tolist() == [0, 0, 0]
    torch.testing.assert_close(second.sum(-1), torch.ones(2, 1, 1))
