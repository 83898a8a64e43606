"""Optimizers: AdamW for all weights, or Muon for the matrices and convolutions inside of a model and AdamW for the
others."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.accelerator import has_fused_optimizers
from foveate.errors import UserError
from foveate.nn import bfloat16_is_fast
from foveate.training.optimizer_state import NUMBERS
from foveate.training.parallel.placement import mesh_of
from foveate.training.rates import factor
from foveate.training.settings import Training

MOMENTUM = 0.95
"""Muon's decay rate of the gradient's mean."""

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the polynomial a x + b x^3 + c x^5 that moves all singular values towards 1 (Jordan et al. 2024)."""

ITERATIONS = 5


def optimizer(model: nn.Module, settings: Training, device: torch.device) -> torch.optim.AdamW:
    """The optimizer that the settings name, with weight decay on matrices only.

    Fused if PyTorch supports it: for 5 million weights in 100 tensors, a step of AdamW on two CPU cores takes 2 ms
    instead of 9 with `foreach` and 8 with neither. Raises UserError for Muon on sharded weights.
    """
    named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    inside = _matrices_inside(model) if settings.optimizer == "muon" else set()
    if any(hasattr(parameter, "full_tensor") for parameter in inside):  # DTensors, whose import takes a second
        raise UserError("optimizer muon needs whole matrices on each process: use --parallel replicate, or adamw")
    matrices = [(name, parameter) for name, parameter in named if parameter.ndim >= 2]
    groups: list[dict[str, Any]] = []
    for options, members in (
        ({"weight_decay": settings.weight_decay}, [one for one in matrices if one[1] not in inside]),
        ({"weight_decay": 0.0}, [one for one in named if one[1].ndim < 2]),
        ({"weight_decay": settings.weight_decay, MUON: True}, [one for one in matrices if one[1] in inside]),
    ):
        rates: dict[float, list[nn.Parameter]] = {1.0: []}
        for name, parameter in members:
            rates.setdefault(factor(name, settings), []).append(parameter)
        groups += [{**options, FACTOR: rate, "params": own} for rate, own in rates.items() if own]
    groups = _by_mesh(groups)
    fused = has_fused_optimizers(device)
    kind = Muon if inside else torch.optim.AdamW
    return kind(groups, settings.learning_rate, settings.betas, settings.epsilon, fused=fused)


def _by_mesh(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Groups of parameters that are distributed alike, which fused operations need.

    Where this changes their order, each group has the `NUMBERS` that its parameters had.
    """
    if len({mesh_of(parameter) for group in groups for parameter in group["params"]}) < 2:
        return groups
    found: dict[tuple[int, Any], dict[str, Any]] = {}
    number = 0
    for place, group in enumerate(groups):
        for parameter in group["params"]:
            same = found.setdefault((place, mesh_of(parameter)), {**group, "params": [], NUMBERS: []})
            same["params"].append(parameter)
            same[NUMBERS].append(number)
            number += 1
    return list(found.values())


FACTOR = "factor"
"""What the learning rate is multiplied by in a parameter group."""

MOST_TOGETHER = 2**22
"""The most weights of matrices of one shape that Muon updates by one call: more is not faster, and takes memory."""

MUON = "muon"
"""Marks the parameter group that Muon updates."""


def state_names(group: Mapping[str, Any]) -> set[str]:
    """The names of the tensors that are kept for each parameter of a group."""
    return {"step", "momentum"} if group.get(MUON) else {"step", "exp_avg", "exp_avg_sq"}


class Muon(torch.optim.AdamW):
    """Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/) for one group of matrices, AdamW for the
    others.

    Muon's update is the gradient's Nesterov mean with all singular values moved to about 1. It is scaled to the usual
    size of AdamW's updates, so that both have one learning rate (Liu et al. 2025, https://arxiv.org/abs/2502.16982).
    The weights (D, C, h, w) of a convolution are a matrix (D, C*h*w).
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        for group in self.param_groups:
            alike: dict[Any, list[tuple[Tensor, Tensor]]] = {}
            for matrix in group["params"] if group.get(MUON) else ():
                if matrix.grad is not None:
                    mean = self._mean(matrix, matrix.grad)
                    matrix.grad = None  # AdamW skips it
                    alike.setdefault((mean.shape, mesh_of(matrix)), []).append((matrix, mean))
            for pairs in alike.values():
                most = max(1, MOST_TOGETHER // pairs[0][1].numel())
                for begin in range(0, len(pairs), most):
                    self._update(pairs[begin : begin + most], group["lr"], group["weight_decay"])
        return super().step(closure)

    def _mean(self, matrix: Tensor, gradient: Tensor) -> Float[Tensor, "M N"]:
        """Nesterov's mean of the gradients of a matrix."""
        state = self.state[matrix]
        if not state:
            state["step"] = torch.zeros(())  # AdamW asks every state for it when it is loaded
            state["momentum"] = torch.zeros_like(matrix)
        state["step"] += 1
        mean = state["momentum"].lerp_(gradient, 1 - MOMENTUM)
        return gradient.lerp(mean, MOMENTUM).flatten(1)

    @staticmethod
    def _update(pairs: Sequence[tuple[Tensor, Tensor]], rate: float, weight_decay: float) -> None:
        """Change matrices by their means, which have one shape: one call for all of them is faster."""
        changes = orthogonalized(torch.stack([mean for _, mean in pairs]))
        for (matrix, mean), change in zip(pairs, changes, strict=True):
            matrix.mul_(1 - rate * weight_decay)
            matrix.add_(change.view(matrix.shape), alpha=-rate * 0.2 * math.sqrt(max(mean.shape)))


def orthogonalized(matrices: Float[Tensor, "K M N"]) -> Float[Tensor, "K M N"]:
    """Each matrix with all its singular values between about 0.7 and 1.2.

    The iterations need no more precision than bfloat16 has. A CPU that is slow in it takes a hundred times as long for
    such products as in float32, in which it computes them.
    """
    a, b, c = COEFFICIENTS
    wide = matrices.shape[1] <= matrices.shape[2]
    precision = torch.float32 if matrices.device.type == "cpu" and not bfloat16_is_fast() else torch.bfloat16
    x = (matrices if wide else matrices.mT).to(precision)
    x = x / (torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(ITERATIONS):
        product = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(product, product, product, beta=b, alpha=c), x, beta=a)
    return (x if wide else x.mT).to(matrices.dtype)


def _matrices_inside(model: nn.Module) -> set[Tensor]:
    """The weights of linear layers and convolutions in the parts of a model: not its own layers, such as the output's,
    no embeddings, which may be tied to them, and no convolutions whose groups have few inputs."""
    tables = {part.weight for part in model.modules() if isinstance(part, nn.Embedding)}
    inside = [part for name, part in model.named_modules() if "." in name]
    return {part.weight for part in inside if isinstance(part, nn.Linear) or _mixes_channels(part)} - tables


def _mixes_channels(part: nn.Module) -> bool:
    """Returns whether a layer is a convolution that reads all channels at once."""
    return isinstance(part, (nn.Conv1d, nn.Conv2d)) and part.groups == 1
