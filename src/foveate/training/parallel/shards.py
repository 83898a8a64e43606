"""A shard of the model on each process. Weights, gradients and optimizer state are distributed, and weights are
gathered while a unit of the plan computes (FSDP2, Zhao et al. 2023, https://arxiv.org/abs/2304.11277)."""

import copy
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from foveate.errors import UserError
from foveate.training.parallel.placement import Placement
from foveate.training.parallel.plan import units


class Shards(Placement):
    """A model of which each process trains a part.

    The caller's model stays on the CPU. A copy of it is sharded unit by unit, so that a device holds its shard and one
    unit of weights. Only the main process holds the whole model, during validation.
    """

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        for name, parameter in model.named_parameters():
            if not parameter.ndim:
                raise UserError(f"'{name}' is a single number, which cannot be sharded: use parallel 'replicate'")
        self.model, self.device = model.cpu(), device
        self.main = dist.get_rank() == 0
        self.working = copy.deepcopy(self.model).train()
        self._distribute(self.working)
        # The warning is about changing logits in place, which no objective does.
        warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor", UserWarning)

    def _distribute(self, model: nn.Module) -> None:
        mesh = init_device_mesh(self.device.type, (dist.get_world_size(),))
        for unit in [*units(model), model]:
            fully_shard(unit, mesh=mesh)

    @contextmanager
    def gradients_of(self, last: bool) -> Iterator[None]:
        assert isinstance(self.working, FSDPModule)
        self.working.set_requires_gradient_sync(last)
        yield

    @contextmanager
    def full_model(self) -> Iterator[nn.Module]:
        plain = self.model.state_dict()
        for name, tensor in self.working.state_dict().items():
            whole = self.whole(tensor)
            if self.main:
                plain[name].copy_(whole)
        if self.main:
            self.model.to(self.device)
        yield self.model
        self.model.cpu()

    def scatter(self) -> None:
        plain = self.model.state_dict()
        parts = {name: self.part(plain[name], like) for name, like in self.working.state_dict().items()}
        self.working.load_state_dict(parts)

    def whole(self, tensor: Tensor) -> Tensor:
        if not isinstance(tensor, DTensor):
            return tensor
        whole = tensor.full_tensor()
        return whole.cpu() if self.main else whole.new_empty(0)

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        if not isinstance(like, DTensor) or tensor.shape != like.shape:
            return tensor
        # Each process has the whole tensor and takes its part.
        return distribute_tensor(tensor.to(self.device), like.device_mesh, like.placements, src_data_rank=None)

    def norm(self, gradients: Iterable[Tensor]) -> Tensor:
        norm = super().norm(gradients)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm
