"""Batches of prose: passages to learn to write, and paragraphs, sentence by sentence, to learn to write again."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from foveate.contracts import END, IGNORE, PAD, START, Batch, Tokenizer, count_labels, label_batch
from foveate.data.prose import Passage
from foveate.data.rows import Numbers, padded, tokenised, within_budget
from foveate.data.shuffled_batches import ShuffledBatches
from foveate.errors import UserError


class PassageBatches(ShuffledBatches):
    """Batches to train a language model on: passages of about one length, each between START and END.

    inputs: `tokens` (B, T), beginning with START, filled up with PAD; `lengths` (B,); with conditions,
    `condition` (B,). labels (B, T): the tokens one place on, with END, then IGNORE.

    `conditions` numbers the conditions of passages, from 1; without it the batches name none. The passages are read and
    tokenised once, and kept as numbers, four bytes a token. Those with more than `max_length` tokens are left out,
    counted, and told by `report`; UserError when none is left.
    """

    def __init__(
        self,
        passages: Iterable[Passage],
        tokenizer: Tokenizer,
        tokens: int,
        max_length: int | None = None,
        seed: int = 0,
        conditions: Mapping[str, int] | None = None,
    ) -> None:
        """`tokens` is the budget: the most places of a batch, padding included."""
        numbers = {} if conditions is None else conditions
        texts = ((passage.text, (passage.place, numbers.get(passage.condition, 0))) for passage in passages)
        most = math.inf if max_length is None else max_length
        self._rows, known, read = tokenised(texts, tokenizer, most)
        self.report = _left_out("passages", read, len(known), max_length)
        super().__init__(self._rows.lengths - 1, tokens, seed)
        self._places = [place for place, _ in known]
        self._conditions = None if conditions is None else torch.tensor([number for _, number in known])

    def in_order(self) -> Iterator[tuple[list[int], Batch]]:
        """All batches once, each with the places of its passages among those that are not left out."""
        order = np.argsort(self._rows.lengths, kind="stable")
        for group in within_budget(order, self._rows.lengths, self._tokens):
            yield group.tolist(), self._batch(group)

    def _batch(self, places: Numbers) -> Batch:
        written, labels = _to_write(self._rows.take(places))
        inputs = {"tokens": written["target"], "lengths": written["target_lengths"]}
        if self._conditions is not None:
            inputs["condition"] = self._conditions[places]
        return label_batch(inputs, labels, _named(self._places, places))


class SentenceBatches(ShuffledBatches):
    """Batches to train a sequence auto-encoder on: each passage as one sequence, to be read and written again.

    inputs: `source` (B, S), ending with END, and `target` (B, T), beginning with START, both filled up with PAD;
    `source_lengths` and `target_lengths` (B,). labels (B, T): the source, then IGNORE.

    Passages with more than `max_length` tokens are left out, counted, and told by `report`; UserError when none is
    left.
    """

    def __init__(
        self, passages: Iterable[Passage], tokenizer: Tokenizer, tokens: int, max_length: int, seed: int
    ) -> None:
        """`tokens` is the budget: the most places of a batch, padding included."""
        texts = ((passage.text, passage.place) for passage in passages)
        self._rows, self._places, read = tokenised(texts, tokenizer, max_length)
        self.report = _left_out("passages", read, len(self._places), max_length)
        super().__init__(self._rows.lengths - 1, tokens, seed)

    def _batch(self, passages: Numbers) -> Batch:
        rows = self._rows.take(passages)
        inputs, labels = _to_write(rows)
        source, lengths = padded([row[1:] for row in rows], PAD)
        return label_batch(
            {"source": source, "source_lengths": lengths, **inputs}, labels, _named(self._places, passages)
        )


@dataclass
class ParagraphBatch(Batch):
    """A batch whose examples are paragraphs, and whose rows are their sentences."""

    @property
    def examples(self) -> int:
        return len(self.inputs["paragraphs"])

    def rows(self, chosen: slice) -> "ParagraphBatch":
        """Some of the paragraphs alone, with their sentences."""
        numbers, lengths = (self.inputs[name][chosen] for name in ("paragraphs", "paragraph_lengths"))
        places = torch.arange(numbers.shape[1])
        real = places < lengths[:, None]
        sentences, ends = numbers[real], lengths.cumsum(0)[:, None]
        inputs = {name: self.inputs[name][sentences] for name in ("source", "source_lengths", "target")}
        inputs["paragraphs"] = torch.where(real, ends - lengths[:, None] + places, 0)
        inputs["paragraph_lengths"] = lengths
        return ParagraphBatch(inputs, {"labels": self.labels[sentences]}, self.weight[sentences], self.source)


class ParagraphBatches(ShuffledBatches):
    """Batches to train a hierarchical auto-encoder on: passages as paragraphs, whose sentences are rows.

    inputs: those of `paragraph_inputs`, and `target` (P, T), beginning with START, filled up with PAD. labels
    (P, T): the target one place on, with END, then IGNORE.

    After its last sentence each paragraph has an empty one. Paragraphs with a sentence of more than `max_length` tokens
    are left out, counted, and told by `report`; UserError when none is left.
    """

    def __init__(
        self, passages: Iterable[Passage], tokenizer: Tokenizer, tokens: int, max_length: int, seed: int
    ) -> None:
        """`tokens` is the budget: the most places of a batch, padding included."""
        numbered = enumerate(passages)
        texts = ((text, (number, passage.place)) for number, passage in numbered for text in passage.sentences)
        self._rows, known, _ = tokenised(texts, tokenizer, begin=(), end=())
        counts = np.bincount(np.array([number for number, _ in known], np.int64))
        ends = counts.cumsum()
        longest = np.maximum.reduceat(self._rows.lengths, ends - counts)
        fitting = np.flatnonzero(longest <= max_length)
        self.report = _left_out("paragraphs", len(counts), len(fitting), max_length)
        self._ends, self._counts = ends[fitting], counts[fitting]
        self._places = [known[end - 1][1] for end in self._ends.tolist()]
        super().__init__(longest[fitting] + 1, tokens, seed)

    def _cut(self, order: Numbers) -> list[Numbers]:
        return _cut(order, self._lengths, self._tokens, self._counts + 1)

    def _batch(self, group: Numbers) -> Batch:
        sides = zip(self._ends[group], self._counts[group], strict=True)
        rows = [self._rows.take(np.arange(end - count, end)) for end, count in sides]
        paragraphs = [[*(row.tolist() for row in sentences), []] for sentences in rows]
        targets, labels = _to_write([np.array([START, *row, END]) for rows in paragraphs for row in rows])
        inputs = {**paragraph_inputs(paragraphs), "target": targets["target"]}
        return ParagraphBatch(inputs, {"labels": labels}, count_labels(labels), _named(self._places, group))


def encode_sentences(passages: Sequence[Passage], tokenizer: Tokenizer) -> list[list[list[int]]]:
    """The token ids of each sentence of each passage."""
    found = iter(tokenizer.encode([sentence for passage in passages for sentence in passage.sentences]))
    return [list(islice(found, len(passage.sentences))) for passage in passages]


def paragraph_inputs(paragraphs: Sequence[Sequence[Sequence[int]]]) -> dict[str, torch.Tensor]:
    """What a hierarchical auto-encoder reads of paragraphs of sentences of token ids, the empty last ones included.

    `source` (P, S), the sentences one below the other, each ending with END, filled up with PAD; `source_lengths` (P,);
    `paragraphs` (B, K), the rows of each paragraph's sentences, filled up with 0; `paragraph_lengths` (B,).
    """
    rows = [np.array([*sentence, END]) for paragraph in paragraphs for sentence in paragraph]
    source, source_lengths = padded(rows, PAD)
    ends = np.cumsum([len(paragraph) for paragraph in paragraphs])
    places = [np.arange(end - len(paragraph), end) for paragraph, end in zip(paragraphs, ends, strict=True)]
    numbers, lengths = padded(places, 0)
    return {"source": source, "source_lengths": source_lengths, "paragraphs": numbers, "paragraph_lengths": lengths}


def paragraph_batches(
    paragraphs: Sequence[Sequence[Sequence[int]]], tokens: int
) -> Iterator[tuple[list[int], dict[str, torch.Tensor]]]:
    """Batches to read: the places of their paragraphs in the list, and their `paragraph_inputs`; shortest first.

    An empty sentence is added to each paragraph.
    """
    ended = [[*paragraph, []] for paragraph in paragraphs]
    longest, rows = _sizes(ended)
    for group in _cut(np.argsort(longest, kind="stable"), longest, tokens, rows):
        places = group.tolist()
        yield places, paragraph_inputs([ended[place] for place in places])


def _to_write(rows: Sequence[Numbers]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Inputs and labels to learn to write sequences from START to END."""
    target, lengths = padded([row[:-1] for row in rows], PAD)
    labels, _ = padded([row[1:] for row in rows], IGNORE)
    return {"target": target, "target_lengths": lengths}, labels


def _sizes(paragraphs: Sequence[Sequence[Sequence[int]]]) -> tuple[Numbers, Numbers]:
    """Of each paragraph the places of its longest sentence, and how many sentences there are."""
    longest = np.array([max(map(len, paragraph)) + 1 for paragraph in paragraphs])
    return longest, np.array([len(paragraph) for paragraph in paragraphs])


def _cut(order: Numbers, longest: Numbers, budget: int, rows: Numbers) -> list[Numbers]:
    """Examples, ordered by their longest row, cut where rows times longest row would exceed the budget.

    An example that is larger than the budget comes alone.
    """
    cuts, count = [], 0
    for place, example in enumerate(order.tolist()):
        count += int(rows[example])
        if count * int(longest[example]) > budget and count > rows[example]:
            cuts.append(place)
            count = int(rows[example])
    return np.split(order, cuts)


def _named(places: Sequence[str], group: Numbers) -> str:
    """Where the examples of a batch stand, for messages."""
    shown = ", ".join(dict.fromkeys(places[place] for place in group[:3].tolist()))
    return f"{len(group)} passages, of {shown}" + (" and others" if len(group) > 3 else "")


def _left_out(kind: str, read: int, kept: int, max_length: int | None) -> str:
    """One line for the user: how many are over-long. Raises UserError when all of them are."""
    if not read:
        raise UserError(f"there are no {kind} to read")
    if max_length is None:
        return f"{read:,} {kind}"
    if not kept:
        raise UserError(f"each of the {read:,} {kind} has more than {max_length:,} tokens; raise the longest")
    return f"{read - kept:,} of {read:,} {kind} left out for more than {max_length:,} tokens"
