"""Parallel text as token ids, pool after pool: what has been tokenised once is kept as long as memory allows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from foveate.contracts import Tokenizer
from foveate.data.parallel_corpus import Pair, ParallelText
from foveate.data.ragged import PIECE, Numbers, RaggedArray
from foveate.errors import UserError

KEPT_TOKENS = 100_000_000
"""Tokens that are kept from one pass to the next, both sides together: 400 MB."""


@dataclass
class Pool:
    """Tokenised pairs among which sentences of one length are sought: source and end; start, target and end."""

    lines: Numbers
    source: RaggedArray
    target: RaggedArray
    read: int
    """How many pairs were read for it; those with too many tokens on a side are not in it."""

    @property
    def lengths(self) -> Numbers:
        """Places that each pair takes in a batch, on its longer side."""
        return np.maximum(self.source.lengths, self.target.lengths - 1)

    @property
    def tokens(self) -> int:
        return int(self.source.lengths.sum() + self.target.lengths.sum())


class Pools:
    """The pools of a text; iterating goes over all of them, and tokenises those that are not kept."""

    def __init__(self, text: ParallelText, tokenizers: tuple[Tokenizer, Tokenizer], max_length: int, size: int) -> None:
        """A pool is made of `size` pairs, without those of more than `max_length` tokens on a side.

        Raises UserError when there is none left in the whole text.
        """
        self.read = self.too_long = 0
        """Pairs read so far (all of them, after one iteration), and how many of them were left out."""
        self._text = text
        self._tokenizers = tokenizers
        self._max_length = max_length
        self._size = size
        self._kept: list[Pool] = []
        self._all_kept = False
        next(iter(self))

    @property
    def one(self) -> bool:
        """Whether a single pool holds the whole text, and is kept."""
        return len(self._kept) == 1 and self._kept[0].read < self._size

    def __iter__(self) -> Iterator[Pool]:
        return (pool for pool in self._pools() if len(pool.lines))

    def _pools(self) -> Iterator[Pool]:
        number = read = too_long = 0
        for pool in self._kept_and_new():
            number += 1
            read += pool.read
            too_long += pool.read - len(pool.lines)
            if read > self.read:
                self.read, self.too_long = read, too_long
            yield pool
        self._all_kept = number == len(self._kept)
        if read == too_long:
            self._text.check()  # knows better what is wrong when there was nothing to read
            raise UserError(
                f"{self._text.name}: each of the {read:,} pairs has more than {self._max_length:,} tokens on a side; "
                f"raise the longest sentence"
            )

    def _kept_and_new(self) -> Iterator[Pool]:
        number = 0
        while number < len(self._kept):  # which may grow meanwhile
            yield self._kept[number]
            number += 1
        if self._all_kept:
            return
        pairs = islice(self._text.pairs(), sum(pool.read for pool in self._kept), None)
        while (pool := self._tokenised(pairs)).read:
            if number == len(self._kept) and sum(kept.tokens for kept in [*self._kept, pool]) <= KEPT_TOKENS:
                self._kept.append(pool)
            number += 1
            yield pool

    def _tokenised(self, pairs: Iterator[Pair]) -> Pool:
        """The next pool; one of no pairs at the end of the text."""
        pieces, read = [], 0
        while piece := list(islice(pairs, min(PIECE, self._size - read))):
            read += len(piece)
            pieces.append(self._piece(piece))
        lines = np.concatenate([lines for lines, _, _ in pieces]) if pieces else np.zeros(0, np.int64)
        return Pool(
            lines,
            RaggedArray.joined([rows for _, rows, _ in pieces]),
            RaggedArray.joined([rows for *_, rows in pieces]),
            read,
        )

    def _piece(self, pairs: Sequence[Pair]) -> tuple[Numbers, RaggedArray, RaggedArray]:
        source_tokenizer, target_tokenizer = self._tokenizers
        source_end, special = source_tokenizer.special.end, target_tokenizer.special
        start, end = special.start, special.end
        sources = source_tokenizer.encode([pair.source for pair in pairs])
        targets = target_tokenizer.encode([pair.target for pair in pairs])
        fitting = [
            (pair.line, [*source, source_end], [start, *target, end])
            for pair, source, target in zip(pairs, sources, targets, strict=True)
            if len(source) <= self._max_length and len(target) <= self._max_length
        ]
        lines = np.array([line for line, _, _ in fitting], np.int64)
        return (
            lines,
            RaggedArray([source for _, source, _ in fitting]),
            RaggedArray([target for _, _, target in fitting]),
        )
