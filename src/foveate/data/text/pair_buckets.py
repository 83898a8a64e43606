"""Parallel text as token ids, bucket after bucket: what has been tokenised once is kept as long as memory allows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from foveate.contracts import Tokenizer
from foveate.data.batching import Batching
from foveate.data.buckets import Bucket
from foveate.data.ragged import PIECE, Numbers, RaggedArray
from foveate.data.text.parallel_corpus import Pair, ParallelText
from foveate.errors import UserError

KEPT_TOKENS = 100_000_000
"""Tokens that are kept from one pass to the next, both sides together: 400 MB."""


class TokenPair(NamedTuple):
    """A pair as token ids, with those around either side."""

    source: Numbers
    target: Numbers


class SideTokenizer(NamedTuple):
    """The tokenizer of one side of all pairs, and the tokens around its texts."""

    tokenizer: Tokenizer
    begin: Sequence[int]
    """The token ids before a text."""
    end: Sequence[int]
    """The token ids behind it."""


@dataclass(frozen=True)
class TokenPairs(Sequence[TokenPair]):
    """The pairs of a bucket."""

    lines: Numbers
    source: RaggedArray
    target: RaggedArray
    read: int
    """How many pairs were read for it; those with too many tokens on a side are not in it."""

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, row: int) -> TokenPair:  # type: ignore[override]  # no slices
        return TokenPair(self.source[row], self.target[row])

    def place(self, row: int) -> str:
        return f"line {self.lines[row]}"

    @property
    def tokens(self) -> int:
        return int(self.source.lengths.sum() + self.target.lengths.sum())


class PairBuckets:
    """The buckets of a text that may be larger than memory; iterating tokenises those that are not kept.

    Pairs with more than `max_length` tokens on a side (those around it not counted) are left out, counted, and
    reported by `report`.
    """

    def __init__(
        self,
        text: ParallelText,
        batching: Batching[Any],
        sides: tuple[SideTokenizer, SideTokenizer],
        max_length: int,
        size: int = 100_000,
    ) -> None:
        """A bucket is made of `size` pairs. Raises UserError where all pairs of the text are left out."""
        self._text, self._batching, self._sides, self._max_length, self._size = text, batching, sides, max_length, size
        self._read = self._too_long = 0
        self._kept: list[Bucket[TokenPairs]] = []
        self._all_kept = False
        longest = (np.zeros(len(side.begin) + max_length + len(side.end), np.int64) for side in sides)
        self.largest = batching.cost(TokenPair(*longest)), f"a pair of {max_length:,} tokens on a side (--max-length)"
        next(iter(self))

    @property
    def report(self) -> str:
        """One line for the user: how many of the pairs read so far (all of them, after an epoch) are over-long."""
        counted = f"{self._text.name}: {self._too_long:,} of {self._read:,} pairs"
        return f"{counted} left out for more than {self._max_length:,} tokens on a side"

    def __length_hint__(self) -> int:
        """1 where a single bucket holds the whole text and is kept; otherwise nobody knows."""
        return 1 if len(self._kept) == 1 and self._kept[0].prepared.read < self._size else NotImplemented

    def __iter__(self) -> Iterator[Bucket[TokenPairs]]:
        return (bucket for bucket in self._buckets() if len(bucket.prepared))

    def _buckets(self) -> Iterator[Bucket[TokenPairs]]:
        number = read = too_long = 0
        for bucket in self._cached_and_new():
            number += 1
            read += bucket.prepared.read
            too_long += bucket.prepared.read - len(bucket.prepared)
            if read > self._read:
                self._read, self._too_long = read, too_long
            yield bucket
        self._all_kept = number == len(self._kept)
        if read == too_long:
            self._text.check()  # knows better what is wrong when there was nothing to read
            raise UserError(
                f"{self._text.name}: each of the {read:,} pairs has more than {self._max_length:,} tokens on a side; "
                f"raise the longest sentence"
            )

    def _cached_and_new(self) -> Iterator[Bucket[TokenPairs]]:
        number = 0
        while number < len(self._kept):  # which may grow meanwhile
            yield self._kept[number]
            number += 1
        if self._all_kept:
            return
        pairs = islice(self._text.pairs(), sum(bucket.prepared.read for bucket in self._kept), None)
        while (found := self._tokenise(pairs)).read:
            bucket = Bucket(found, self._batching, self._text.name, found.place)
            if number == len(self._kept) and found.tokens + self._cached_tokens() <= KEPT_TOKENS:
                self._kept.append(bucket)
            number += 1
            yield bucket

    def _cached_tokens(self) -> int:
        return sum(bucket.prepared.tokens for bucket in self._kept)

    def _tokenise(self, pairs: Iterator[Pair]) -> TokenPairs:
        """The next pairs; none at the end of the text."""
        pieces, read = [], 0
        while piece := list(islice(pairs, min(PIECE, self._size - read))):
            read += len(piece)
            pieces.append(self._piece(piece))
        lines = np.array([line for lines, _, _ in pieces for line in lines], np.int64)
        sources = RaggedArray.joined([rows for _, rows, _ in pieces])
        targets = RaggedArray.joined([rows for *_, rows in pieces])
        return TokenPairs(lines, sources, targets, read)

    def _piece(self, pairs: Sequence[Pair]) -> tuple[list[int], RaggedArray, RaggedArray]:
        source, target = self._sides
        sources = source.tokenizer.encode([pair.source for pair in pairs])
        targets = target.tokenizer.encode([pair.target for pair in pairs])
        fitting = [
            row
            for row, both in enumerate(zip(sources, targets, strict=True))
            if max(map(len, both)) <= self._max_length
        ]
        return (
            [pairs[row].line for row in fitting],
            RaggedArray([[*source.begin, *sources[row], *source.end] for row in fitting]),
            RaggedArray([[*target.begin, *targets[row], *target.end] for row in fitting]),
        )
