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
from foveate.data.text.prose_batches import encode_passages, encode_sentences, paragraph_inputs
from foveate.errors import UserError
from foveate.forms.language import Continuation, ReadBeginning, split_passage
from foveate.forms.processor import PreparedExample, Processor, RowProcessor
from foveate.forms.rewriting import ReadPassage, Rewritten
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


KINDS = ["language", "sentences", "paragraphs"]


def forms(kind: str, tokenizer: Any, conditions: tuple[str, ...] = ()) -> Processor:
    """What reads and writes passages: a language model, or an auto-encoder of sentences or paragraphs."""
    if kind == "language":
        return Processor(ReadBeginning(tokenizer=tokenizer, conditions=conditions), Continuation(tokenizer=tokenizer))
    whole = {"tokenizer": tokenizer, "hierarchical": kind == "paragraphs"}
    return Processor(ReadPassage(**whole), Rewritten(**whole))


def encoded(processor: Processor, passages: Iterable[Passage], most: float) -> list[Any]:
    """The passages of at most this many tokens in a row."""
    reads = processor.reads
    if isinstance(reads, ReadBeginning):
        return encode_passages(passages, reads.tokenizer, most, reads.numbers or {})
    return [one for one in reads.encode(passages) if reads.longest(one) <= most]


def bucketed(processor: Processor, passages: Iterable[Passage], budget: int, most: float = math.inf) -> BucketedBatches:
    split = split_passage
    if not isinstance(processor.reads, ReadBeginning):
        split = lambda row: PreparedExample(row, row.tokens)  # noqa: E731
    found = Dataset("letters", encoded(processor, passages, most))
    return BucketedBatches(OneBucket(found, RowProcessor(processor, split)), budget, 3)


def test_passages_to_write() -> None:
    """Each between START and END; a condition that is not in the table is number 0, none."""
    passages = [passage("ab", "x"), passage("cab", "y"), passage("a", "z")]
    (batch,) = bucketed(forms("language", Letters(), ("x", "y")), passages, 100).epoch(0)
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
    assert "condition" not in next(bucketed(forms("language", Letters()), passages, 100).epoch(0)).inputs


@pytest.mark.parametrize("kind", KINDS)
def test_every_example_once_within_the_budget_in_an_order_of_the_epoch(kind: str) -> None:
    passages = random_passages()
    batches = bucketed(forms(kind, Letters()), passages, 80)
    first, again, second = (list(batches.epoch(number)) for number in (0, 0, 1))
    name = "tokens" if kind == "language" else "target"
    targets = [sorted(tuple(row) for batch in epoch for row in rows(batch, name)) for epoch in (first, second)]
    texts = [one.text for one in passages]
    if kind == "paragraphs":
        texts = [sentence for one in passages for sentence in (*one.sentences, "")]
    assert targets[0] == targets[1] == sorted((START, *tokens) for tokens in Letters().encode(texts))
    assert all(batch.inputs[name].numel() <= 80 for batch in first)
    assert [batch.source for batch in first] == [batch.source for batch in again] != [batch.source for batch in second]
    later = list(batches.epoch(0, skip=4))
    assert len(later) == len(first) - 4
    assert torch.equal(later[0].labels, first[4].labels)


def test_sentences_to_write_again() -> None:
    (batch,) = bucketed(forms("sentences", Letters()), [passage("ab c")], 100).epoch(0)
    assert batch.inputs["source"].tolist() == [[4, 5, 6, END]]
    assert batch.inputs["source_lengths"].tolist() == batch.inputs["target_lengths"].tolist() == [4]
    assert batch.inputs["target"].tolist() == [[START, 4, 5, 6]]
    assert batch.labels.tolist() == [[4, 5, 6, END]]
    assert batch.source == "letters, ab c of letters"


def test_paragraphs_to_write_again() -> None:
    """Each sentence is a row, and so is the empty one after the last."""
    (batch,) = bucketed(forms("paragraphs", Letters()), [passage("abc b")], 100).epoch(0)
    assert batch.inputs["target"].tolist() == [[START, 4, 5, 6], [START, 5, PAD, PAD], [START, PAD, PAD, PAD]]
    assert batch.labels.tolist() == [[4, 5, 6, END], [5, END, IGNORE, IGNORE], [END, IGNORE, IGNORE, IGNORE]]
    expected = paragraph_inputs([[[4, 5, 6], [5], []]], LEARNED)
    assert batch.inputs.keys() == {*expected, "target"}
    assert all(torch.equal(batch.inputs[name], expected[name]) for name in expected)


def test_some_paragraphs_of_a_batch() -> None:
    """As several processes share a batch: each has its paragraphs, as if there were no others."""
    words = ["abc", "b", "cc", "a", "ab"]
    passages = [passage(" ".join(words[:2])), passage(words[2]), passage(" ".join(words[3:]))]
    (batch,) = bucketed(forms("paragraphs", Letters()), passages, 100).epoch(0)
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
    """With an empty sentence at the end of each."""
    reads, passages = forms("paragraphs", Letters()).reads, random_passages()
    inputs, _ = reads.tensors([reads.prepare(one) for one in passages])
    seen = []
    for length, numbers in zip(inputs["paragraph_lengths"], inputs["paragraphs"], strict=True):
        sentences = inputs["source"][numbers[:length]].tolist()
        seen.append([[token for token in sentence if token not in (PAD, END)] for sentence in sentences])
    assert seen == [[*paragraph, []] for paragraph in encode_sentences(passages, Letters())]


def test_what_is_too_long_is_left_out() -> None:
    passages = [passage("abc ab"), passage("a a a")]
    for kind, most in (("language", 4), ("sentences", 4), ("paragraphs", 2)):
        assert [one.place for one in encoded(forms(kind, Letters()), passages, most)] == ["letters, a a a"]
        assert len(encoded(forms(kind, Letters()), passages, 5)) == 2


@pytest.mark.parametrize(("kind", "places"), [("sentences", 8), ("paragraphs", 16)])
def test_an_example_larger_than_the_budget_is_named(kind: str, places: int) -> None:
    with pytest.raises(UserError, match=f"letters, aaaaaaa takes {places} places, but a batch has only 7"):
        bucketed(forms(kind, Letters()), [passage("a"), passage("aaaaaaa")], 7)


@pytest.mark.parametrize("kind", KINDS)
def test_passages_are_read_as_they_come_and_tokenised_in_pieces(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Noted(Letters):
        def encode(self, texts: Sequence[str]) -> list[list[int]]:
            at_once.append(len(texts))
            return super().encode(texts)

    at_once: list[int] = []
    whole, passages = bucketed(forms(kind, Letters()), random_passages(), 80, 9), random_passages()
    monkeypatch.setattr("foveate.data.ragged.PIECE", 7)
    parts = bucketed(forms(kind, Noted()), iter(passages), 80, 9)
    assert max(at_once) == 7
    for one, other in zip(parts.epoch(0), whole.epoch(0), strict=True):
        assert one.source == other.source
        assert torch.equal(one.labels, other.labels)


def test_it_is_known_how_many_batches_an_epoch_has() -> None:
    for kind in KINDS:
        batches = bucketed(forms(kind, Letters()), random_passages(), 60)
        assert length_hint(batches) == len(list(batches.epoch(0))) > 2
