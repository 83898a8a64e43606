"""How a model lies on the processes of a training: whole, a replica on each, or a shard on each.

The caller's model is never wrapped: what a recipe holds is the plain one, which has the weights whenever it is asked
for. What computes is `working`.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn

from foveate.contracts import Output


class Placement:
    """A model that is whole on the only process."""

    working: nn.Module

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        self.model = self.working = model.to(device)
        self.device = device

    def __call__(self, **inputs: Tensor) -> Output:
        return self.working(**inputs)

    def gradients_of(self, last: bool) -> AbstractContextManager:
        """The forward and backward pass of one batch run in it; the processes exchange gradients after the `last`."""
        return nullcontext()

    @contextmanager
    def gathered(self) -> Iterator[nn.Module]:
        """The caller's model with the present weights, at the main process; all processes must ask for it."""
        yield self.model

    def scatter(self) -> None:
        """Take over the weights that the caller's model has."""

    def whole(self, tensor: Tensor) -> Tensor:
        """All of a tensor of the optimizer, at the main process; all processes must ask for it."""
        return tensor

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        """The reverse: of a whole tensor, what belongs to this process' part `like` of a parameter."""
        return tensor

    def norm(self, gradients: Iterable[Tensor]) -> Tensor:
        """The norm of the gradient of the whole model."""
        return nn.utils.get_total_norm(gradients)
