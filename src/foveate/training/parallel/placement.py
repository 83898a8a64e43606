"""The placement of a model on the processes of a training: whole, a replica, a shard or a part of each layer on each.

The caller's model is never wrapped. The module that computes is `working`; the caller's model gets its weights on
request.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from foveate.contracts import Output
from foveate.finite import first_not_finite
from foveate.tensor_parts import StoredTensor
from foveate.training.moving_average import MovingAverage
from foveate.training.parallel.processes import Processes


class Placement:
    """A whole model on the only process."""

    working: nn.Module

    in_parts = False
    """Whether a process has only a part of the weights: then each one writes and reads its own part of a checkpoint."""

    average: MovingAverage | None = None
    """That of the weights, where one is kept: then models are validated and kept with it."""

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        self.model = self.working = model.to(device)
        self.device = device

    def __call__(self, **inputs: Tensor) -> Output:
        return self.working(**inputs)

    def gradients_of(self, last: bool) -> AbstractContextManager:
        """A context for the forward and backward pass of a batch. Processes exchange gradients after the `last` one."""
        return nullcontext()

    def state(self) -> dict[str, Tensor]:
        """The weights that this process trains, by name, and what else the model remembers."""
        return (self.working if self.in_parts else self.model).state_dict()

    @contextmanager
    def model_in_use(self) -> Iterator[nn.Module]:
        """The caller's model with the weights that it is used with, in the main process. Called by all processes."""
        with (
            nullcontext() if self.average is None else self.average.exchanged(self.state()),
            self.full_model() as model,
        ):
            yield model

    @contextmanager
    def full_model(self) -> Iterator[nn.Module]:
        """The caller's model with the current weights, in the main process. Called by all processes."""
        yield self.model

    def scatter(self) -> None:
        """Load the weights of the caller's model."""

    def own(self, tensor: Tensor) -> tuple[Tensor, tuple[int, ...]] | None:
        """Returns the part of a tensor that this process writes, and where in the whole tensor that begins."""
        return tensor, (0,) * tensor.ndim

    def part(self, tensor: Tensor | StoredTensor, like: Tensor) -> Tensor:
        """The part of a whole tensor, in memory or in files, that belongs to this process' part `like` of another."""
        return tensor[...]

    def not_finite(self, processes: Processes) -> str | None:
        """The name of the first tensor of the model with a number that is infinite or NaN in any process. Called by all
        processes."""
        state = self.state()
        parts = {name: own[0] for name, tensor in state.items() if (own := self.own(tensor)) is not None}
        names, wrong = [*state], first_not_finite(parts)
        (before_end,) = processes.greatest([0 if wrong is None else len(names) - names.index(wrong)])
        return names[len(names) - int(before_end)] if before_end else None

    def scale(self, gradients: Sequence[Tensor], factor: float) -> None:
        """Multiply gradients by a factor."""
        torch._foreach_mul_(list(gradients), factor)

    def norm(self, gradients: Iterable[Tensor]) -> Tensor:
        """The norm of the gradient of the whole model."""
        return nn.utils.get_total_norm(gradients)

    def clip(self, parameters: Iterable[nn.Parameter], most: float, norm: Tensor) -> None:
        """Scale gradients of this `norm` down to `most`."""
        nn.utils.clip_grads_with_norm_(parameters, most, norm)


def mesh_of(tensor: Tensor) -> Any:
    """The processes that a tensor is distributed over; None for a plain one. (The class of the others is imported only
    where there are some, because that takes a second.)"""
    return getattr(tensor, "device_mesh", None)
