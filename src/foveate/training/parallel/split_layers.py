"""A part of each layer on each process (tensor parallelism, Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053),
with or without shards of these parts on further processes (FSDP2).

All processes that split a layer have the same examples. The plan says which layers are split; what a layer computes
from its part of the weights is plain code, which infers the number of heads from the width that it finds.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from foveate.errors import UserError
from foveate.training.parallel.placement import mesh_of
from foveate.training.parallel.plan import SPLITS, Split, sequences, units, vocabulary
from foveate.training.parallel.processes import Processes
from foveate.training.parallel.sequence_slices import SEQUENCE, lay_out, plan_slices, slice_sequences
from foveate.training.parallel.shards import Shards

INPUTS = ("source", "positions", "source_positions")
"""Tensors that attention reads besides its first input, by name."""


class SplitLayers(Shards):
    """A model of which each process has a part of each layer."""

    def __init__(
        self, model: nn.Module, device: torch.device, processes: Processes, sharded: bool, split_logits: bool
    ) -> None:
        """`sharded`: the groups of processes that split a layer hold shards of it. `split_logits`: the objective takes
        logits of which each process has a part."""
        self._processes, self._sharded, self._split_logits = processes, sharded, split_logits
        _check(model, processes.splitting)
        super().__init__(model, device)

    def _distribute(self, model: nn.Module) -> None:
        sizes = self._processes.groups, self._processes.splitting
        mesh = init_device_mesh(self.device.type, sizes, mesh_dim_names=("shards", "layers"))
        _split(model, mesh["layers"], self._split_logits)
        if self._sharded:
            for unit in [*units(model), model]:
                fully_shard(unit, mesh=mesh["shards"])

    @contextmanager
    def gradients_of(self, last: bool) -> Iterator[None]:
        if not self._sharded:
            yield
            return
        with super().gradients_of(last):
            yield

    def scale(self, gradients: Sequence[Tensor], factor: float) -> None:
        for group in _by_mesh(gradients):
            super().scale(group, factor)

    def norm(self, gradients: Iterable[Tensor]) -> Tensor:
        norms = [super(SplitLayers, self).norm(group) for group in _by_mesh(list(gradients))]
        return torch.stack(norms).norm()

    def clip(self, parameters: Iterable[nn.Parameter], most: float, norm: Tensor) -> None:
        for group in _by_mesh([each for each in parameters if each.grad is not None]):
            super().clip(group, most, norm)  # type: ignore[arg-type]


def _by_mesh(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """Plain tensors, and those that are distributed alike: torch's operations on lists do not take both."""
    groups: dict[DeviceMesh | None, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(mesh_of(tensor), []).append(tensor)
    return list(groups.values())


def _check(model: nn.Module, parts: int) -> None:
    """Raise UserError for a model whose layers cannot be split among `parts` processes."""
    advice = "use as many processes as divide it, or --parallel shard"
    splits = 0
    for name, layer in model.named_modules():
        split = SPLITS.get(type(layer), Split())
        if getattr(layer, "query_norm", None) is not None:
            raise UserError(f"'{name}' normalizes queries and keys, which processes cannot split: use --parallel shard")
        if split.columns and (other := _whole_part(layer, split)):
            raise UserError(
                f"'{name}.{other}' is that of all heads, which processes cannot split: use --parallel shard"
            )
        for one in split.columns:
            linear = getattr(layer, one)
            if not isinstance(linear, nn.Linear):
                kind = type(linear).__name__.strip("_")
                raise UserError(f"'{name}.{one}' is a {kind}, which processes cannot split: use --parallel shard")
            width = linear.out_features
            head = getattr(layer, "head_width", 1)
            if width // head % parts:
                what = "heads" if head > 1 else "hidden units"
                raise UserError(f"{parts} processes cannot split {width // head} {what} of '{name}.{one}': {advice}")
        splits += bool(split.columns)
    if not splits:
        raise UserError("the model has no Transformer layers to split: use --parallel replicate or shard")


def _whole_part(layer: nn.Module, split: Split) -> str | None:
    """The name of a parameter that has numbers of all heads, such as a gate or heads that talk; None if there is
    none."""
    known = {*split.columns, split.rows, *split.heads}
    return next((name for name, _ in layer.named_parameters() if name.split(".")[0] not in known), None)


def _split(model: nn.Module, mesh: DeviceMesh, split_logits: bool) -> None:
    """Leave of each layer what belongs to this process."""
    ties = _ties(model)
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    plan = plan_slices(model)
    sliced = {block for blocks, _ in sequences(model) for block in blocks}
    for name, layer in model.named_modules():
        split = SPLITS.get(type(layer), Split())
        if split.columns:
            layer.register_forward_pre_hook(_share_input(mesh), with_kwargs=True)
        for one in split.columns:
            plan[f"{name}.{one}"] = ColwiseParallel()
        if split.rows is not None:
            plan[f"{name}.{split.rows}"] = _sum_parts(to_slices=name.rpartition(".")[0] in sliced)
        for one in split.heads:
            weight = distribute_tensor(getattr(layer, one).data, mesh, [Shard(0)], src_data_rank=None)
            setattr(layer, one, nn.Parameter(weight))
            # A layer without a forward pass of its own belongs to the model's.
            (layer if split.columns else model).register_forward_pre_hook(_use_local(layer, one))
    tables, outputs = (
        [name for name in names if _has_parts(model.get_submodule(name), mesh.size())] for names in vocabulary(model)
    )
    plan |= {name: RowwiseParallel(input_layouts=Replicate()) for name in tables}
    layout = (
        {"output_layouts": Shard(-1), "use_local_output": False} if split_logits else {"output_layouts": Replicate()}
    )
    plan |= {name: ColwiseParallel(**layout) for name in outputs}
    parallelize_module(model, mesh, plan, src_data_rank=None)
    slice_sequences(model, mesh)
    for name, other in ties.items():
        owner, _, attribute = name.rpartition(".")
        setattr(model.get_submodule(owner), attribute, model.get_parameter(other))
    for name in frozen:  # torch makes new parameters
        model.get_parameter(name).requires_grad_(False)


def _sum_parts(to_slices: bool) -> RowwiseParallel:
    """A layer of which each process computes a summand of the output: of the whole sum, or of each one's slice."""
    if to_slices:
        return RowwiseParallel(output_layouts=Shard(SEQUENCE), use_local_output=False)
    return RowwiseParallel()


def _has_parts(layer: nn.Module, parts: int) -> bool:
    """Returns whether each of `parts` processes gets at least one row of a layer's weights."""
    rows = len(layer.weight)  # type: ignore[arg-type]
    return -(-rows // parts) * (parts - 1) < rows


def _ties(model: nn.Module) -> dict[str, str]:
    """For each further name of a parameter that has several, the first one."""
    first: dict[Tensor, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        first.setdefault(parameter, name)
    names = model.named_parameters(remove_duplicate=False)
    return {name: first[parameter] for name, parameter in names if first[parameter] != name}


def _share_input(mesh: DeviceMesh) -> Callable[..., Any]:
    """A hook that gives a layer an input that all its parts read: its gradients are summed once, not for each part."""

    def share(
        layer: nn.Module, given: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        first = tuple(lay_out(value, mesh, Replicate()) for value in given[:1])
        return (*first, *given[1:]), {
            name: lay_out(value, mesh, Replicate()) if name in INPUTS else value for name, value in named.items()
        }

    return share


def _use_local(layer: nn.Module, name: str) -> Callable[..., None]:
    """A hook that lets a layer see its part of a parameter that it uses without a linear layer.

    A module looks for an attribute among its own ones first, and only then among its parameters.
    """

    def use(*_: Any) -> None:
        layer.__dict__[name] = layer._parameters[name].to_local()  # type: ignore[union-attr]

    return use
