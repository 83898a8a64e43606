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
from torch.distributed.tensor import DTensor

from foveate.errors import UserError
from foveate.tensor_parts import StoredTensor
from foveate.training.parallel.placement import Placement
from foveate.training.parallel.plan import units


class Shards(Placement):
    """A model of which each process trains a part.

    The caller's model stays on the CPU. A copy of it is sharded unit by unit, so that a device holds its shard and one
    unit of weights. Only the main process holds the whole model, during validation.
    """

    in_parts = True

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
            whole = tensor.full_tensor().cpu() if isinstance(tensor, DTensor) else tensor
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

    def own(self, tensor: Tensor) -> tuple[Tensor, tuple[int, ...]] | None:
        if not isinstance(tensor, DTensor):
            return (tensor, (0,) * tensor.ndim) if self.main else None
        local, mesh = tensor.to_local(), tensor.device_mesh
        repeated = any(
            one.is_replicate() and mesh.get_local_rank(number) for number, one in enumerate(tensor.placements)
        )
        if repeated or 0 not in mesh.mesh or not local.numel():  # the other group of processes has the same
            return None
        return local, tuple(one.start for one in _place(tensor))

    def part(self, tensor: Tensor | StoredTensor, like: Tensor) -> Tensor:
        if not isinstance(like, DTensor) or tensor.shape != like.shape:
            return tensor[...]
        local = tensor[_place(like)].to(self.device).contiguous()
        return DTensor.from_local(local, like.device_mesh, like.placements, shape=like.shape, stride=like.stride())

    def norm(self, gradients: Iterable[Tensor]) -> Tensor:
        norm = super().norm(gradients)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm


def _place(tensor: DTensor) -> tuple[slice, ...]:
    """Returns the place of this process' part in the whole tensor."""
    (chunk,) = tensor.__create_chunk_list__()  # what torch's own checkpoints ask for
    return tuple(slice(begin, begin + length) for begin, length in zip(chunk.offsets, chunk.sizes, strict=True))
