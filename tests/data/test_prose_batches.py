"""Batches of passages, of sentences to write again, and of paragraphs sentence by sentence."""

import math
from collections.abc import Iterable, Sequence
from operator import length_hint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foveate.contracts import IGNORE, Batch
from foveate.data.buckets import BucketedBatches, OneBucket
from foveate.data.dataset import Dataset
from foveate.data.text.documents import Passage
from foveate.data.text.language_processor import LanguageProcessor
from foveate.data.text.prose_batches import (
    ParagraphProcessor,
    SentenceProcessor,
    encode_sentences,
    paragraph_batches,
    paragraph_inputs,
)
from foveate.errors import UserError
from foveate.special_tokens import LEARNED

PAD, START, END = LEARNED.pad, LEARNED.start, LEARNED.end


class Letters:
    """A token for each letter: a is 4."""

    special = LEARNED

    def __len__(self) -> int:
        return 30

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[ord(letter) - 93 for letter in text.replace(" ", "")] for text in texts]

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        raise NotImplementedError

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        raise NotImplementedError

    def save(self, path: Path) -> None:
        raise NotImplementedError


def passage(text: str, condition: str = "") -> Passage:
    return Passage(f"letters, {text}", condition, tuple(text.split()))


def random_passages(count: int = 61) -> list[Passage]:
    generator = np.random.default_rng(5)
    words = ["abc"[: generator.integers(1, 4)] * int(generator.integers(1, 5)) for _ in range(3 * count)]
    return [passage(" ".join(words[place : place + int(generator.integers(1, 4))])) for place in range(count)]


def rows(batch: Batch, name: str) -> list[list[int]]:
    return [[token for token in row if token not in (PAD, IGNORE)] for row in batch.inputs[name].tolist()]


KINDS = [LanguageProcessor, SentenceProcessor, ParagraphProcessor]


def bucketed(processor: Any, passages: Iterable[Passage], budget: int, most: float = math.inf) -> BucketedBatches:
    return BucketedBatches(OneBucket(Dataset("letters", processor.encode(passages, most)), processor), budget, 3)


def test_passages_to_write() -> None:
    """Each between START and END; a condition that is not in the table is number 0, none."""
    passages = [passage("ab", "x"), passage("cab", "y"), passage("a", "z")]
    (batch,) = bucketed(LanguageProcessor(Letters(), conditions=["x", "y"]), passages, 100).epoch(0)
    by_length = batch.inputs["lengths"].argsort()
    assert batch.inputs["tokens"][by_length].tolist() == [
        [START, 4, PAD, PAD],
        [START, 4, 5, PAD],
        [START, 6, 4, 5],
    ]
    assert batch.labels[by_length].tolist() == [
        [4, END, IGNORE, IGNORE],
        [4, 5, END, IGNORE],
        [6, 4, 5, END],
    ]
    assert batch.inputs["condition"][by_length].tolist() == [0, 1, 2]
    assert batch.total_weight == 9
    assert "condition" not in next(bucketed(LanguageProcessor(Letters()), passages, 100).epoch(0)).inputs


@pytest.mark.parametrize("kind", KINDS)
def test_every_example_once_within_the_budget_in_an_order_of_the_epoch(kind: type) -> None:
    passages = random_passages()
    batches = bucketed(kind(Letters()), passages, 80)
    first, again, second = (list(batches.epoch(number)) for number in (0, 0, 1))
    name = "tokens" if kind is LanguageProcessor else "target"
    targets = [sorted(tuple(row) for batch in epoch for row in rows(batch, name)) for epoch in (first, second)]
    texts = [one.text for one in passages]
    if kind is ParagraphProcessor:
        texts = [sentence for one in passages for sentence in (*one.sentences, "")]
    assert targets[0] == targets[1] == sorted((START, *tokens) for tokens in Letters().encode(texts))
    assert all(batch.inputs[name].numel() <= 80 for batch in first)
    assert [batch.source for batch in first] == [batch.source for batch in again] != [batch.source for batch in second]
    later = list(batches.epoch(0, skip=4))
    assert len(later) == len(first) - 4
    assert torch.equal(later[0].labels, first[4].labels)


def test_sentences_to_write_again() -> None:
    (batch,) = bucketed(SentenceProcessor(Letters()), [passage("ab c")], 100).epoch(0)
    assert batch.inputs["source"].tolist() == [[4, 5, 6, END]]
    assert batch.inputs["source_lengths"].tolist() == batch.inputs["target_lengths"].tolist() == [4]
    assert batch.inputs["target"].tolist() == [[START, 4, 5, 6]]
    assert batch.labels.tolist() == [[4, 5, 6, END]]
    assert batch.source == "letters, ab c of letters"


def test_paragraphs_to_write_again() -> None:
    """Each sentence is a row, and so is the empty one after the last."""
    (batch,) = bucketed(ParagraphProcessor(Letters()), [passage("abc b")], 100).epoch(0)
    assert batch.inputs["target"].tolist() == [[START, 4, 5, 6], [START, 5, PAD, PAD], [START, PAD, PAD, PAD]]
    assert batch.labels.tolist() == [[4, 5, 6, END], [5, END, IGNORE, IGNORE], [END, IGNORE, IGNORE, IGNORE]]
    expected = paragraph_inputs([[[4, 5, 6], [5], []]], LEARNED)
    assert batch.inputs.keys() == {*expected, "target"}
    assert all(torch.equal(batch.inputs[name], expected[name]) for name in expected)


def test_some_paragraphs_of_a_batch() -> None:
    """As several processes share a batch: each has its paragraphs, as if there were no others."""
    words = ["abc", "b", "cc", "a", "ab"]
    passages = [passage(" ".join(words[:2])), passage(words[2]), passage(" ".join(words[3:]))]
    (batch,) = bucketed(ParagraphProcessor(Letters()), passages, 100).epoch(0)
    assert batch.examples == 3
    seen = []
    for chosen in (slice(0, None, 2), slice(1, None, 2)):
        part = batch.select(chosen)
        assert part.examples == len(range(3)[chosen])
        for numbers, length in zip(part.inputs["paragraphs"], part.inputs["paragraph_lengths"], strict=True):
            targets, labels = part.inputs["target"][numbers[:length]], part.labels[numbers[:length]]
            sources = part.inputs["source"][numbers[:length]]
            texts = [[token for token in row if token > END] for row in targets.tolist()]
            assert texts == [[token for token in row if token > END] for row in labels.tolist()]
            assert texts == [[token for token in row if token > END] for row in sources.tolist()]
            assert part.inputs["source_lengths"][numbers[:length]].tolist() == [len(text) + 1 for text in texts]
            seen.append(texts)
    assert sorted(seen) == sorted([*found, []] for found in encode_sentences(passages, Letters()))
    assert sum(batch.select(slice(place, place + 1)).total_weight for place in range(3)) == batch.total_weight


def test_paragraph_inputs() -> None:
    inputs = paragraph_inputs([[[4, 5, 6], [5], []], [[6, 6], []]], LEARNED)
    assert inputs["source"].tolist() == [
        [4, 5, 6, END],
        [5, END, PAD, PAD],
        [END, PAD, PAD, PAD],
        [6, 6, END, PAD],
        [END, PAD, PAD, PAD],
    ]
    assert inputs["source_lengths"].tolist() == [4, 2, 1, 3, 1]
    assert inputs["paragraphs"].tolist() == [[0, 1, 2], [3, 4, 0]]
    assert inputs["paragraph_lengths"].tolist() == [3, 2]


def test_paragraphs_to_read() -> None:
    """Every paragraph once, with its place and an empty sentence at its end."""
    paragraphs = encode_sentences(random_passages(), Letters())
    seen = {}
    for places, inputs in paragraph_batches(paragraphs, LEARNED, 40):
        for place, length, numbers in zip(places, inputs["paragraph_lengths"], inputs["paragraphs"], strict=True):
            sentences = inputs["source"][numbers[:length]].tolist()
            seen[place] = [[token for token in sentence if token not in (PAD, END)] for sentence in sentences]
    assert seen == {place: [*paragraph, []] for place, paragraph in enumerate(paragraphs)}


def test_what_is_too_long_is_left_out() -> None:
    passages = [passage("abc ab"), passage("a a a")]
    for kind, most in ((LanguageProcessor, 4), (SentenceProcessor, 4), (ParagraphProcessor, 2)):
        assert [one.place for one in kind(Letters()).encode(passages, most)] == ["letters, a a a"]
        assert len(kind(Letters()).encode(passages, 5)) == 2


@pytest.mark.parametrize(("kind", "places"), [(SentenceProcessor, 8), (ParagraphProcessor, 16)])
def test_an_example_larger_than_the_budget_is_named(kind: type, places: int) -> None:
    with pytest.raises(UserError, match=f"letters, aaaaaaa takes {places} places, but a batch has only 7"):
        bucketed(kind(Letters()), [passage("a"), passage("aaaaaaa")], 7)


def test_passages_with_their_batches() -> None:
    passages = random_passages()
    seen = []
    for places, batch in LanguageProcessor(Letters()).in_order(passages, 40):
        texts = [passages[place].text for place in places]
        assert rows(batch, "tokens") == [[START, *tokens] for tokens in Letters().encode(texts)]
        seen += places
    assert sorted(seen) == list(range(len(passages)))


@pytest.mark.parametrize("kind", KINDS)
def test_passages_are_read_as_they_come_and_tokenised_in_pieces(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    class Noted(Letters):
        def encode(self, texts: Sequence[str]) -> list[list[int]]:
            at_once.append(len(texts))
            return super().encode(texts)

    at_once: list[int] = []
    whole, passages = bucketed(kind(Letters()), random_passages(), 80, 9), random_passages()
    monkeypatch.setattr("foveate.data.ragged.PIECE", 7)
    parts = bucketed(kind(Noted()), iter(passages), 80, 9)
    assert max(at_once) == 7
    for one, other in zip(parts.epoch(0), whole.epoch(0), strict=True):
        assert one.source == other.source
        assert torch.equal(one.labels, other.labels)


def test_it_is_known_how_many_batches_an_epoch_has() -> None:
    for kind in KINDS:
        batches = bucketed(kind(Letters()), random_passages(), 60)
        assert length_hint(batches) == len(list(batches.epoch(0))) > 2
