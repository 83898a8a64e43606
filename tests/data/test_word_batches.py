"""Batches of tagged sentences: what is in them, in which order they come, and what is left out."""

from operator import length_hint

import pytest
import torch

from foveate.contracts import IGNORE, PAD, UNKNOWN
from foveate.data import Lexicon, TaggedBatches, TaggedText, word_batches
from foveate.data.lexicon import spelling
from foveate.errors import UserError

TEXT = TaggedText.from_sentences(
    [[(f"w{place % 7}", f"T{place % 3}") for place in range(start, start + 1 + start % 5)] for start in range(23)],
    "numbers",
)
LEXICON = Lexicon.learn(TEXT)


def batches(**changes) -> TaggedBatches:
    return TaggedBatches(TEXT, LEXICON, **{"tokens": 11, "max_length": 5, "seed": 3, **changes})


def test_a_batch_holds_numbers_spellings_and_labels():
    text = TaggedText.from_sentences([[("a", "X"), ("b", "Y"), ("a", "X")], [("b", "X")]], "two")
    lexicon = Lexicon.learn(text)
    (batch,) = TaggedBatches(text, lexicon, tokens=6, max_length=3, seed=0).epoch(0)
    longer = int(batch.inputs["lengths"].argmax())
    a, b = 4, 5  # as often as each other, in the order of the text
    assert batch.inputs["lengths"].sort().values.tolist() == [1, 3]
    assert batch.inputs["words"][longer].tolist() == [a, b, a]
    assert batch.inputs["words"][1 - longer].tolist() == [b, PAD, PAD]
    assert batch.labels[longer].tolist() == [0, 1, 0]
    assert batch.labels[1 - longer].tolist() == [0, IGNORE, IGNORE]
    assert batch.inputs["spellings"][longer, 1].tolist() == spelling("b")
    assert batch.total_weight == 4
    assert batch.source in ("lines 1 and 2 of two", "lines 2 and 1 of two")


def test_every_sentence_once_within_the_budget():
    epoch = list(batches().epoch(0))
    assert sum(len(batch.labels) for batch in epoch) == 23
    assert sum(batch.total_weight for batch in epoch) == TEXT.check().words
    assert max(batch.labels.numel() for batch in epoch) <= 11


def test_the_order_depends_on_seed_and_epoch_alone():
    def names(seed: int, epoch: int, skip: int = 0) -> list[str]:
        return [batch.source for batch in batches(seed=seed).epoch(epoch, skip)]

    assert names(3, 1) == names(3, 1)
    assert names(3, 1)[2:] == names(3, 1, skip=2)
    assert names(3, 1) != names(3, 2)
    assert names(3, 1) != names(4, 1)


def test_long_sentences_are_left_out_and_counted():
    found = batches(max_length=4)
    assert sum(len(batch.labels) for batch in found.epoch(0)) == 19
    assert found.report == "numbers: 4 of 23 sentences left out for more than 4 words"
    with pytest.raises(UserError, match="numbers: each sentence has more than 1 words; raise the longest"):
        TaggedBatches(TEXT.part("numbers", lambda number: number % 5 == 0), LEXICON, tokens=11, max_length=1, seed=3)
    with pytest.raises(UserError, match="budget of a batch in tokens is 4, but must be at least 5"):
        batches(tokens=4)


def test_batches_to_tag_come_longest_first():
    found = list(word_batches([["w0"], ["w1", "new", "w2"], ["w3", "w4"]], LEXICON, tokens=4))
    assert [places for places, _ in found] == [[1], [2, 0]]
    assert found[0][1]["words"][0, 1] == UNKNOWN
    assert found[1][1]["lengths"].tolist() == [2, 1]
    assert found[1][1]["words"].shape == (2, 2)
    assert torch.equal(found[1][1]["spellings"][0, 0], torch.tensor(spelling("w3")))
    assert list(word_batches([], LEXICON, tokens=4)) == []


def test_it_is_known_how_many_batches_an_epoch_has():
    assert length_hint(batches()) == len(list(batches().epoch(0))) > 2
