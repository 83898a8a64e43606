"""What counting makes of a language model: interpolated n-grams, the baseline that a network has to beat."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from foveate.errors import UserError

Array = np.ndarray

ANY_DISCOUNT = 0.5
"""Where no n-gram occurs exactly once, nothing says how much to leave for those that never did."""


class Ngrams:
    """Interpolated Kneser-Ney n-grams (Chen and Goodman 1999), with one discount for each order.

    The probability of a token after h, the `order - 1` tokens before it, is (max(c - D, 0) + D t p) / c(h): c is how
    often it follows h, c(h) how often anything does, t how many different tokens do, and p its probability after h
    without its first token. Below the highest order, c counts the different tokens before instead of occurrences.
    Sequences are token ids without the start token, with the end; each is read as if after `start` alone.
    """

    def __init__(self, sequences: Sequence[Sequence[int]], order: int, vocabulary: int, start: int) -> None:
        """`vocabulary` is how many ids there are."""
        self.start = start
        if vocabulary**order >= 2**63:
            raise UserError(f"{order}-grams of {vocabulary:,} tokens do not fit into 64-bit numbers")
        self.order, self.vocabulary = order, vocabulary
        grams, counts = np.unique(self._grams(sequences, order), return_counts=True)
        tables = [_Table(grams, counts, vocabulary)]
        for shorter in range(order - 1, 0, -1):
            grams, counts = np.unique(grams % vocabulary**shorter, return_counts=True)
            tables.append(_Table(grams, counts, vocabulary))
        self._tables = tables[::-1]

    def log_probs(self, sequences: Sequence[Sequence[int]]) -> Array:
        """The log-probability of every token of every sequence, end to end, in nats."""
        grams = self._grams(sequences, self.order)
        probability = np.full(len(grams), 1 / self.vocabulary)
        for size, table in enumerate(self._tables, 1):
            probability = table.interpolated(grams % self.vocabulary**size, probability)
        return np.log(probability)

    def _grams(self, sequences: Sequence[Sequence[int]], order: int) -> Array:
        """Each token with the `order - 1` before it, as one number: its digits in base `vocabulary` are the tokens."""
        begin = [self.start] * (order - 1)
        tokens = np.fromiter(chain.from_iterable(chain(begin, sequence) for sequence in sequences), np.int64)
        grams = np.zeros_like(tokens)
        for back in range(order):
            grams[back:] += tokens[: len(tokens) - back] * self.vocabulary**back
        real = np.concatenate([np.arange(len(begin) + len(sequence)) >= len(begin) for sequence in sequences])
        return grams[real]


class _Table:
    """The n-grams of one order, with their counts and those of what comes before their last token."""

    def __init__(self, grams: Array, counts: Array, vocabulary: int) -> None:
        """`grams` in ascending order."""
        self.grams, self.counts, self.vocabulary = grams, counts, vocabulary
        self.contexts, first = np.unique(grams // vocabulary, return_index=True)
        self.totals = np.add.reduceat(counts, first)
        self.kinds = np.diff([*first, len(grams)])
        once, twice = (int((counts == times).sum()) for times in (1, 2))
        self.discount = once / (once + 2 * twice) if once else ANY_DISCOUNT

    def interpolated(self, grams: Array, shorter: Array) -> Array:
        """The probability of the last token of each n-gram, from that after one token less; this, if never seen."""
        counts = _look_up(self.grams, self.counts, grams)
        totals = _look_up(self.contexts, self.totals, grams // self.vocabulary)
        kinds = _look_up(self.contexts, self.kinds, grams // self.vocabulary)
        kept = np.maximum(counts - self.discount, 0) + self.discount * kinds * shorter
        return np.where(totals > 0, kept / np.maximum(totals, 1), shorter)


def _look_up(keys: Array, values: Array, wanted: Array) -> Array:
    """The value of each wanted key, 0 where it is none of the (ascending) keys."""
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], 0)
