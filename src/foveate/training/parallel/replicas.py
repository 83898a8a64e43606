"""A replica of the model on each process. Gradients are averaged during the backward pass (DDP, Li et al. 2020,
https://arxiv.org/abs/2006.15704)."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from foveate.errors import UserError
from foveate.training.parallel.placement import Placement


class Replicas(Placement):
    """A whole model on each process."""

    working: DistributedDataParallel

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        super().__init__(model, device)
        # `Checkpoints.resume` synchronizes the weights.
        self.working = DistributedDataParallel(self.model, init_sync=False, gradient_as_bucket_view=True)

    @contextmanager
    def gradients_of(self, last: bool) -> Iterator[None]:
        if last:
            yield
            self._refuse_unused()
        else:
            with self.working.no_sync():
                yield

    def _refuse_unused(self) -> None:
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad and parameter.grad is None:
                raise UserError(
                    f"the loss does not depend on '{name}', but replicas must exchange all gradients: "
                    f"train on one process, or with parallel 'shard'"
                )
