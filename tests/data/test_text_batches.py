"""Batches of labelled texts: each text once an epoch, within the budget, in an order that repeats."""

from operator import length_hint

import pytest
import torch

from foveate.data.buckets import BucketedBatches
from foveate.data.text.batches import text_batches
from foveate.data.text.labelled import LabelledText
from foveate.data.tokens.tokenizers import train_words
from foveate.errors import UserError
from foveate.forms.label import Label
from foveate.forms.processor import Processor
from foveate.forms.text import Text
from foveate.special_tokens import LEARNED

PAD, START = LEARNED.pad, LEARNED.start

LENGTHS = [1, 2, 3, 5, 7, 11, 13, 2, 3, 5]
EXAMPLES = [("even" if length % 2 == 0 else "odd", " ".join(["word", "other"][i % 2] for i in range(length)))
            for length in LENGTHS]  # fmt: skip


def batches(tokens: int = 29, max_length: int = 11, seed: int = 1) -> BucketedBatches:
    text = LabelledText.from_pairs(EXAMPLES, "lengths")
    reads = Text(max_length=max_length, tokenizer=train_words(text.texts(), 10))
    processor = Processor(reads, Label(labels={"even": 1, "odd": 9}))
    return BucketedBatches(reads.buckets(text, processor), tokens, seed)


def test_each_text_once_an_epoch_with_its_label() -> None:
    found = list(batches().epoch(0))
    lengths = [length for batch in found for length in (batch.inputs["lengths"] - 1).tolist()]
    labels = [label for batch in found for label in batch.labels[:, 0].tolist()]
    assert sorted(lengths) == sorted(length for length in LENGTHS if length != 13)
    assert labels == [length % 2 for length in lengths]
    for batch in found:
        rows, longest = batch.inputs["tokens"].shape
        assert rows * longest <= 29
        assert longest == int(batch.inputs["lengths"].max())
        assert batch.inputs["tokens"][:, 0].tolist() == [START] * rows
        real = torch.arange(longest) < batch.inputs["lengths"][:, None]
        assert bool(((batch.inputs["tokens"] != PAD) == real).all())
        assert batch.total_weight == rows
        assert batch.source.endswith("of lengths")


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    def order(made: BucketedBatches, epoch: int, skip: int = 0) -> list[str]:
        return [batch.source for batch in made.epoch(epoch, skip)]

    assert order(batches(), 3) == order(batches(), 3)
    assert order(batches(), 3, skip=2) == order(batches(), 3)[2:]
    orders = {tuple(order(batches(seed=seed), epoch)) for seed, epoch in ((1, 0), (1, 1), (2, 0))}
    assert len(orders) == 3


def test_texts_are_tokenised_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(batches().epoch(0))
    monkeypatch.setattr("foveate.data.ragged.PIECE", 3)
    for one, other in zip(batches().epoch(0), whole, strict=True):
        assert one.source == other.source
        assert torch.equal(one.inputs["tokens"], other.inputs["tokens"])
        assert torch.equal(one.labels, other.labels)


def test_over_long_texts_are_counted() -> None:
    assert batches().report == "lengths: 1 of 10 texts left out for more than 11 tokens"
    with pytest.raises(UserError, match="lengths: each of the 10 texts has more than 0 tokens; raise max_length"):
        batches(max_length=0)
    with pytest.raises(UserError, match="line 6 takes 12 places, but a batch has only 11: raise --batch, or"):
        batches(tokens=11)


def test_batches_to_decide_about_are_longest_first() -> None:
    tokenizer = train_words(["a b"] * 2, 10)
    found = list(text_batches([[7], [5, 6, 8, 9, 4], [], [4, 4]], tokenizer, 6))
    assert [places for places, _ in found] == [[1], [3, 0], [2]]
    assert found[1][1]["tokens"].tolist() == [[START, 4, 4], [START, 7, PAD]]
    assert found[2][1]["lengths"].tolist() == [1]


def test_it_is_known_how_many_batches_an_epoch_has() -> None:
    assert length_hint(batches()) == len(list(batches().epoch(0))) > 2
