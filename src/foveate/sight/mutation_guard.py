"""Detects whether a recorded tensor was modified in place."""

import torch
from torch import Tensor

from foveate.sight.key_store import collapse, copy_tensor

CACHE_SIZE = 4
"""Number of recent tensors whose guards are kept: a model passes the same few masks to all its layers."""


class MutationGuard:
    """A tensor of the model, and what is needed to detect a later write to it."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        # Inference tensors have no version counter, so their values are copied.
        self._before = copy_tensor(tensor) if tensor.is_inference() else tensor._version

    @property
    def unchanged(self) -> bool:
        """Whether the tensor has the same values as when it was recorded."""
        if isinstance(self._before, Tensor):
            return torch.equal(collapse(self.tensor), self._before)
        return self.tensor._version == self._before
