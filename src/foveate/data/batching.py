"""What a batcher asks about examples: how to prepare them, what they cost, and how they become a batch."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic

import numpy as np

from foveate.contracts import Batch
from foveate.data.dataset import Dataset, E


class Batching(ABC, Generic[E]):
    """Makes batches of the examples of one kind of data."""

    def prepare(self, dataset: Dataset[E]) -> Sequence[Any]:
        """Computes what is needed once for each example, such as its tokens or pixels. By default the example
        itself."""
        return dataset.examples

    def cost(self, prepared: Any) -> int:
        """Returns the share of a batch's budget that an example takes: tokens, frames. By default 1."""
        return 1

    def rows(self, prepared: Any) -> int:
        """Returns how many rows of a batch an example takes, each of its cost. By default 1."""
        return 1

    def tie_break(self, prepared: Any) -> int:
        """Returns a key that sorts examples of the same cost. By default they stay in random order."""
        return 0

    def group(self, prepared: Any) -> int:
        """Examples of one group are put in the same batch, so that it can compute what they share once. By default all
        are of one group, in random order."""
        return 0

    @property
    def repeats(self) -> int:
        """How often each example of a batch is in it, each time changed in another way. By default once."""
        return 1

    @abstractmethod
    def batch(self, prepared: Sequence[Any], generator: np.random.Generator | None) -> Batch:
        """A batch of prepared examples, changed at random by `generator` where one is given: in training."""
