"""Whether what is a model's own still says what it said when it was noted."""

import torch
from torch import Tensor

from foveate.sight.key_store import bare, own

REMEMBERED = 4
"""So many tensors are remembered: a model hands the same few to all its layers."""


class Unwritten:
    """A tensor that a model may write into, and how to see that it has not."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        # What was made in inference mode does not count how often it is written to.
        self._before = own(tensor) if tensor.is_inference() else tensor._version

    @property
    def holds(self) -> bool:
        """Whether it says what it said."""
        if isinstance(self._before, Tensor):
            return torch.equal(bare(self.tensor), self._before)
        return self.tensor._version == self._before
