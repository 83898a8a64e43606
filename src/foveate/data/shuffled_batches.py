"""Batches of examples of like length in random order: an epoch is planned as a whole, each batch made when it comes."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy

import numpy as np

from foveate.contracts import Batch
from foveate.data.rows import Numbers, within_budget


class ShuffledBatches(ABC):
    """Examples are shuffled, sorted by length and cut into batches whose rows times longest row stay within the budget.

    The batches come in random order, which depends on the seed and the number of the epoch alone.
    `operator.length_hint` tells how many the first epoch has; a later one may have a few more or less.
    """

    def __init__(self, lengths: Numbers, tokens: int, seed: int) -> None:
        """`lengths` are the places that each example takes; `tokens` is the budget of a batch, padding included."""
        self._lengths, self._tokens, self._seed = lengths, tokens, seed

    def resized(self, share: float) -> "ShuffledBatches":
        """The same examples in batches of this share of the budget, or of the longest example."""
        other = copy(self)
        other._tokens = max(round(self._tokens * share), int(self._lengths.max(initial=1)))
        return other

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, counted from 0, without the first `skip`."""
        return map(self._batch, self._plan(number)[skip:])

    def __length_hint__(self) -> int:
        return len(self._plan(0))

    def _plan(self, number: int) -> list[Numbers]:
        generator = np.random.default_rng((self._seed, number))
        shuffled = generator.permutation(len(self._lengths))
        groups = self._cut(shuffled[np.argsort(self._lengths[shuffled], kind="stable")])
        return [groups[place] for place in generator.permutation(len(groups))]

    def _cut(self, order: Numbers) -> list[Numbers]:
        """Examples, ordered by length, in groups within the budget."""
        return within_budget(order, self._lengths, self._tokens)

    @abstractmethod
    def _batch(self, examples: Numbers) -> Batch:
        """What a group of examples becomes."""
