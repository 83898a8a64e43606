"""The state of an optimizer in a checkpoint, by the number of the parameter."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from foveate.tensor_parts import StoredTensor
from foveate.training.parallel import Placement

NUMBERS = "numbers"
"""The numbers of a group's parameters in checkpoints, where they are not in order."""


def numbered_state(optimizer: torch.optim.Optimizer) -> Iterator[tuple[int, Mapping[str, Tensor]]]:
    """The state of each parameter that has one, by its number."""
    numbers = _numbers(optimizer)
    for index, state in optimizer.state_dict()["state"].items():
        yield numbers[index], state


def parameters_by_number(optimizer: torch.optim.Optimizer) -> dict[int, tuple[Tensor, dict[str, Any]]]:
    """The parameter of each number, and its group."""
    members = [(parameter, group) for group in optimizer.param_groups for parameter in group["params"]]
    return dict(zip(_numbers(optimizer), members, strict=True))


def restore_optimizer(
    optimizer: torch.optim.Optimizer, placement: Placement, tensors: Iterable[tuple[str, Tensor | StoredTensor]]
) -> None:
    """Load whole tensors, named "3/exp_avg" by the number of their parameter, into the optimizer of a process."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    indices = {number: index for index, number in enumerate(_numbers(optimizer))}
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors:
        number, key = name.split("/")
        index = indices[int(number)]
        parameter = parameters[index]
        state.setdefault(index, {})[key] = _match_layout(parameter, placement.part(tensor, parameter))
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _numbers(optimizer: torch.optim.Optimizer) -> list[int]:
    """The number of each parameter, in the order of the optimizer."""
    count = sum(len(group["params"]) for group in optimizer.param_groups)
    return [number for group in optimizer.param_groups for number in group.get(NUMBERS, ())] or list(range(count))


def _match_layout(parameter: Tensor, state: Tensor) -> Tensor:
    """The state with the strides of its parameter: the fused optimizer reads both in the order of memory."""
    if state.shape != parameter.shape or state.stride() == parameter.stride():
        return state
    return torch.empty_like(parameter, dtype=state.dtype, device=state.device).copy_(state)
