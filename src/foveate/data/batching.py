"""Batches of sentences of about one length, within a budget of tokens, so that little is spent on padding."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from copy import copy
from itertools import islice

import numpy as np
from torch import Tensor

from foveate.contracts import IGNORE, Batch, Tokenizer, label_batch
from foveate.data.parallel_corpus import ParallelText
from foveate.data.pools import Pool, Pools
from foveate.data.ragged import Numbers, RaggedArray, line_names, padded, within_budget
from foveate.errors import UserError
from foveate.special_tokens import SpecialTokens

_FEW = 16
"""Batches for each of those who share them, from which on it no longer matters who takes the last one."""


class PairBatches:
    """Batches to train a translator on.

    The text is read in pools. The pairs of a pool are shuffled, sorted by length, cut into batches whose rows times
    longest row (on either side) stay within the budget, and the batches come in random order. A text is tokenised once
    and kept, up to some hundred million tokens; what is beyond streams at each epoch. The order depends on the seed and
    the number of the epoch alone.

    Pairs with more than `max_length` tokens on a side (start and end not counted) are left out, counted, and told by
    `report`. Raises UserError when none is left.
    """

    def __init__(
        self,
        text: ParallelText,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        tokens: int,
        max_length: int,
        seed: int,
        pool: int = 100_000,
    ) -> None:
        """`tokens` is the budget: the most places, padding included, of one side of a batch."""
        if tokens <= max_length:
            raise UserError(
                f"a batch of {tokens:,} tokens cannot hold one sentence of {max_length:,} and its end: "
                f"raise the tokens in a batch or lower the longest sentence"
            )
        self.text = text
        self.tokens = tokens
        self.max_length = max_length
        self._seed = seed
        self._pools = Pools(text, (source_tokenizer, target_tokenizer), max_length, pool)
        self.source_special, self.target_special = source_tokenizer.special, target_tokenizer.special

    def resized(self, share: float) -> "PairBatches":
        """The same pairs in batches of this share of the budget, or of the longest pair that there may be."""
        other = copy(self)
        other.tokens = max(round(self.tokens * share), self.max_length + 1)
        return other

    @property
    def report(self) -> str:
        """One line for the user: how many of the pairs read so far (all of them, after an epoch) are over-long."""
        counted = f"{self.text.name}: {self._pools.too_long:,} of {self._pools.read:,} pairs"
        return f"{counted} left out for more than {self.max_length:,} tokens on a side"

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, without the first `skip` (which are counted off and never built).

        inputs: `source` (B, S), with the end token, and `target` (B, T), beginning with the start token, both padded;
        `source_lengths` and `target_lengths` (B,). labels (B, T): the target one place on, with its end, then IGNORE.
        """
        for pool, rows in islice(self._plan(number), skip, None):
            yield self._batch(pool, rows)

    def __length_hint__(self) -> int:
        """The batches of the first epoch; nobody knows how many of a text that is read in several pools."""
        return sum(1 for _ in self._plan(0)) if self._pools.one else NotImplemented

    def padding(self, number: int = 0) -> float:
        """The share of places that are padding, over both sides of an epoch."""
        places = padded = 0
        for pool, rows in self._plan(number):
            for side in (pool.source.lengths[rows], pool.target.lengths[rows] - 1):
                places += len(rows) * int(side.max())
                padded += len(rows) * int(side.max()) - int(side.sum())
        return padded / places

    def _plan(self, number: int) -> Iterator[tuple[Pool, Numbers]]:
        for index, pool in enumerate(self._pools):
            generator = np.random.default_rng((self._seed, number, index))
            groups = within_budget(_by_length(pool, generator), pool.lengths, self.tokens)
            for place in generator.permutation(len(groups)):
                yield pool, groups[place]

    def _batch(self, pool: Pool, rows: Numbers) -> Batch:
        source, source_lengths = padded(pool.source.take(rows), self.source_special.pad)
        targets = pool.target.take(rows)
        target, target_lengths = padded([target[:-1] for target in targets], self.target_special.pad)
        labels, _ = padded([target[1:] for target in targets], IGNORE)
        inputs = {
            "source": source,
            "source_lengths": source_lengths,
            "target": target,
            "target_lengths": target_lengths,
        }
        return label_batch(inputs, labels, f"{line_names(pool.lines[rows].tolist())} of {self.text.name}")


def source_batches(
    sentences: Sequence[Sequence[int]], special: SpecialTokens, tokens: int, at_once: int = 1
) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
    """Batches to translate: the places of their sentences in the list, and `source` (B, S) with `source_lengths` (B,).

    Longest first, so that what does not fit into memory shows at once; rows times longest row stay within `tokens`,
    and a sentence longer than that comes alone. Where it takes several batches, they are made to come out even for
    those who take `at_once` of them at a time.
    """
    rows = RaggedArray([[*sentence, special.end] for sentence in sentences])
    longest_first = np.argsort(-rows.lengths, kind="stable")
    for group in _even(longest_first, rows.lengths, tokens, at_once):
        source, lengths = padded(rows.take(group), special.pad)
        yield group.tolist(), {"source": source, "source_lengths": lengths}


def _even(order: Numbers, lengths: Numbers, budget: int, at_once: int) -> list[Numbers]:
    """As `within_budget`; of few groups so many, and so even, that all who take one at a time have as much to do."""
    groups = within_budget(order, lengths, budget)
    if not 1 < len(groups) <= _FEW * at_once or at_once == 1:
        return groups
    wanted = math.ceil(len(groups) / at_once) * at_once
    least = bisect_left(range(budget), True, key=lambda less: len(within_budget(order, lengths, less)) <= wanted)
    return within_budget(order, lengths, least)


def _by_length(pool: Pool, generator: np.random.Generator) -> Numbers:
    """Rows by the length of the longer side, then by how much longer it is; in random order where both agree.

    The second key rises and falls in turn, so that a batch that reaches from one length to the next finds the other
    side equally long on both sides of the step.
    """
    shuffled = generator.permutation(len(pool.lines))
    longer = pool.lengths[shuffled]
    excess = (pool.source.lengths - pool.target.lengths)[shuffled]
    return shuffled[np.lexsort((np.where(longer % 2 == 0, excess, -excess), longer))]
