"""Sequences of numbers, end to end in one array; how they are cut into batches, filled up, and named to the user."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from foveate.contracts import Tokenizer

Numbers = np.ndarray

Known = TypeVar("Known")

PIECE = 5_000
"""Texts that are lists of Python's numbers at a time: ten times as much memory as arrays."""


class RaggedArray:
    """Token sequences of any lengths, end to end in one array: a tenth of the memory of Python lists."""

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        self.lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
        self._ends = np.cumsum(self.lengths)
        self._tokens = np.fromiter(chain.from_iterable(sequences), np.int32, self.lengths.sum())

    @classmethod
    def joined(cls, parts: Sequence["RaggedArray"]) -> "RaggedArray":
        """The rows of several, in a row."""
        rows = cls([])
        rows.lengths = np.concatenate([rows.lengths, *(part.lengths for part in parts)])
        rows._ends = np.cumsum(rows.lengths)
        rows._tokens = np.concatenate([rows._tokens, *(part._tokens for part in parts)])
        return rows

    def __getitem__(self, row: int) -> Numbers:
        """One row, as a view of the one array."""
        end = self._ends[row]
        return self._tokens[end - self.lengths[row] : end]

    def take(self, rows: Numbers) -> list[Numbers]:
        """Each of the rows, as a view of the one array."""
        ends = self._ends[rows]
        return [self._tokens[begin:end] for begin, end in zip(ends - self.lengths[rows], ends, strict=True)]


def packed(lengths: Numbers, most: int) -> list[Numbers]:
    """The places of sequences that stand one behind the other in each row of at most `most` tokens: the longest first,
    each in the fullest row that has room for it. None may be longer than a row."""
    rows, with_room = list[list[int]](), [list[int]() for _ in range(most + 1)]
    for place in np.argsort(-lengths, kind="stable").tolist():
        size = int(lengths[place])
        room = next((room for room in range(size, most + 1) if with_room[room]), None)
        if room is None:
            rows.append([])
            number, room = len(rows) - 1, most
        else:
            number = with_room[room].pop()
        rows[number].append(place)
        with_room[room - size].append(number)
    return [np.array(row) for row in rows]


def in_pieces(texts: Iterable[Known]) -> Iterator[list[Known]]:
    """Yields pieces that are tokenised together."""
    coming = iter(texts)
    while piece := list(islice(coming, PIECE)):
        yield piece


def drain(items: list[Known]) -> Iterator[Known]:
    """The items in their order; the list is empty in the end, and each item may be freed before the next one."""
    items.reverse()
    while items:
        yield items.pop()


def tokenised(
    texts: Iterable[tuple[str, Known]],
    tokenizer: Tokenizer,
    begin: Sequence[int],
    end: Sequence[int],
    most: float = math.inf,
) -> tuple[RaggedArray, list[Known], int]:
    """The tokens of each text of at most `most` tokens, between `begin` and `end`; what is known of each of these; and
    how many texts there were in all.

    The texts are read once, and a piece of them held at a time.
    """
    read, rows, known = 0, [], []
    for piece in in_pieces(texts):
        found = tokenizer.encode([text for text, _ in piece])
        fitting = [place for place, tokens in enumerate(found) if len(tokens) <= most]
        rows.append(RaggedArray([[*begin, *found[place], *end] for place in fitting]))
        known += [piece[place][1] for place in fitting]
        read += len(piece)
    return RaggedArray.joined(rows), known, read


def within_budget(order: Numbers, lengths: Numbers, budget: int, rows: Numbers | None = None) -> list[Numbers]:
    """The ordered examples, cut where one more would make rows times longest row exceed the budget.

    An example that is larger than the budget comes alone. Each has one row, or as many as `rows` says.
    """
    counts = np.ones(len(order), np.int64) if rows is None else rows[order]
    cuts, count, longest = [], 0, 0
    for place, (length, more) in enumerate(zip(lengths[order].tolist(), counts.tolist(), strict=True)):
        count, longest = count + more, max(longest, length)
        if count * longest > budget and count > more:
            cuts.append(place)
            count, longest = more, length
    return np.split(order, cuts) if len(order) else []


_FEW = 16
"""Batches for each of those who share them, from which on it no longer matters who takes the last one."""


def even_groups(order: Numbers, lengths: Numbers, budget: int, at_once: int) -> list[Numbers]:
    """As `within_budget`; a few groups are made this many, and this even, that all who take one at a time, `at_once` of
    them, have as much to do."""
    groups = within_budget(order, lengths, budget)
    if not 1 < len(groups) <= _FEW * at_once or at_once == 1:
        return groups
    wanted = math.ceil(len(groups) / at_once) * at_once
    least = bisect_left(range(budget), True, key=lambda less: len(within_budget(order, lengths, less)) <= wanted)
    return within_budget(order, lengths, least)


def padded(rows: Sequence[Numbers], fill: int) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B"]]:
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    table = np.full((len(rows), lengths.max()), fill, np.int64)
    table[np.arange(lengths.max()) < lengths[:, None]] = np.concatenate(rows)
    return torch.from_numpy(table), torch.from_numpy(lengths)
