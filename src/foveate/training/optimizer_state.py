"""The state of an optimizer, read back from a checkpoint."""

from collections.abc import Iterable

import torch
from torch import Tensor

from foveate.training.parallel import Placement


def restore_optimizer(
    optimizer: torch.optim.Optimizer, placement: Placement, tensors: Iterable[tuple[str, Tensor]]
) -> None:
    """Load whole tensors, named "3/exp_avg" by the number of their parameter, into the optimizer of a process."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors:
        index, key = name.split("/")
        parameter = parameters[int(index)]
        state.setdefault(int(index), {})[key] = _laid_out_like(parameter, placement.part(tensor, parameter))
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _laid_out_like(parameter: Tensor, state: Tensor) -> Tensor:
    """The state with the strides of its parameter: the fused optimizer reads both in the order of memory."""
    if state.shape != parameter.shape or state.stride() == parameter.stride():
        return state
    return torch.empty_like(parameter, dtype=state.dtype, device=state.device).copy_(state)
