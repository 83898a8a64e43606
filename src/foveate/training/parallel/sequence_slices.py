"""A slice of the sequence on each process, between the layers that processes split (sequence parallelism, Korthikanti
et al. 2022, https://arxiv.org/abs/2205.05198).

Norms, residual sums and their dropout act on each position alone, so each process computes them for its own positions.
A split layer gathers its input from the slices, and the sum of its parts is scattered to them. Together that sends as
much as one sum over whole sequences does.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ParallelStyle, SequenceParallel

from foveate.accelerator import forked_random_numbers
from foveate.nn.dropout import StochasticDepth
from foveate.training.parallel.plan import residuals, sequences, sliced_layers

SEQUENCE = 1
"""The dimension of the positions in activations (B, T, C)."""


def plan_slices(model: nn.Module) -> dict[str, ParallelStyle]:
    """The layers that act on slices, by name."""
    plan: dict[str, ParallelStyle] = {}
    for name in sliced_layers(model):
        layer = model.get_submodule(name)
        drops = isinstance(layer, nn.Dropout)
        # Stochastic depth drops whole examples: the same ones in each slice.
        plan[name] = OnSlice(not isinstance(layer, StochasticDepth)) if drops else SequenceParallel()
    return plan


def slice_sequences(model: nn.Module, mesh: DeviceMesh) -> None:
    """Cut the input of the first of several blocks into slices, and gather what the norm after the last one makes."""
    for blocks, last in sequences(model):
        model.get_submodule(blocks[0]).register_forward_pre_hook(
            lambda _, given: (lay_out(given[0], mesh, Shard(SEQUENCE)), *given[1:])
        )
        model.get_submodule(last).register_forward_hook(
            lambda _, given, output: lay_out(output, mesh, Replicate()).to_local()
        )
        for name in residuals(model, blocks):
            residual: Any = model.get_submodule(name)
            if residual.scale is not None:
                scale = distribute_tensor(residual.scale.data, mesh, [Replicate()], src_data_rank=None)
                residual.scale = nn.Parameter(scale)
            for parameter in residual.parameters():
                _sum_gradient(parameter)
        for parameter in model.get_submodule(last).parameters():
            _sum_gradient(parameter)


def lay_out(value: Any, mesh: DeviceMesh, layout: Any) -> Any:
    """A tensor in slices or whole, where a plain one is whole on each process; any other value as it is."""
    if not isinstance(value, Tensor):
        return value
    if not isinstance(value, DTensor):
        value = DTensor.from_local(value, mesh, [Replicate()], run_check=False)
    if value.placements == (layout,):
        return value
    value = value.redistribute(placements=[layout])
    # Linear layers of torch 2.11 do not read slices that were put together along another dimension than the first.
    return value if value.to_local().is_contiguous() else value.clone(memory_format=torch.contiguous_format)


class OnSlice(ParallelStyle):
    """Runs dropout on a process' own slice.

    The processes that split a layer have the same random numbers. With `own_numbers` each slice has others.
    """

    def __init__(self, own_numbers: bool) -> None:
        super().__init__()
        self.own_numbers = own_numbers

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        drop = module.forward

        def forward(x: DTensor) -> DTensor:
            with numbers_of(device_mesh.get_local_rank() if self.own_numbers else 0, x.device):
                local = drop(x.to_local())
            return DTensor.from_local(
                local, device_mesh, x.placements, run_check=False, shape=x.shape, stride=x.stride()
            )

        module.forward = forward
        return module


@contextmanager
def numbers_of(process: int, device: torch.device) -> Iterator[None]:
    """Random numbers of one process of a group. Afterwards those that the group shares go on, equally in each."""
    seed = int(torch.randint(2**62, ()))
    with forked_random_numbers(device):
        torch.manual_seed(seed + process)
        yield


def _sum_gradient(parameter: nn.Parameter) -> None:
    """Sum the gradients of the slices once, where they would be summed again in each operation that reads them."""
    parameter.register_hook(lambda gradient: gradient.redistribute(placements=[Replicate()]))
