"""What is done with every model, of whatever library: run, look, compare."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from families.compare import compare
from families.outcome import Outcome
from families.reference import Weights
from foveate import UserError, look

TOLERANCE = {"default": 1e-3, "eager": 2e-5}
"""How far a weight may be from the model's own. The default run has other kernels than the reference, whose rounding
errors grow from layer to layer."""

GAIN = 1.5
"""How much larger than usual the random weights of linear layers are, so that attention is decided."""


def decided(model: nn.Module) -> nn.Module:
    """The model with random weights that are the same every time, and look decidedly."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1 and parameter.numel():
                gain = GAIN if parameter.shape[2:].numel() == 1 else 1.0
                parameter.normal_(std=gain / (parameter.numel() / parameter.shape[0]) ** 0.5)
            else:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def run(model: nn.Module, inputs: dict[str, Tensor]) -> Any:
    """The output, with the same random numbers every time."""
    torch.manual_seed(1)
    with torch.no_grad():
        return model(
            **{name: each if isinstance(each, Tensor) else copy.deepcopy(each) for name, each in inputs.items()}
        )


def can_be_seen(model: nn.Module, inputs: dict[str, Tensor]) -> bool:
    """Whether a look at the model ends without an error."""
    try:
        with look(model):
            run(model, inputs)
    except UserError:
        return False
    return True


def tried(
    outcome: Outcome,
    which: str,
    model: nn.Module,
    inputs: dict[str, Tensor],
    reference: list[Weights],
    expected: Any,
    advised: Callable[[str], bool],
) -> None:
    """Look at the model once and note in the outcome what came of it.

    `expected` is the output without looking. `advised` tells whether what an error advises is true.
    """
    try:
        with look(model) as sight:
            output = run(model, inputs)
    except UserError as error:
        outcome.note(which, "refused", str(error))
        outcome.advice.append(advised(str(error)))
        return
    if not same(output, expected):
        outcome.note(which, "wrong", "the output is another one than without looking")
    else:
        outcome.compared(which, compare(sight, reference, TOLERANCE[which]))


def same(one: Any, other: Any) -> bool:
    """Whether two outputs hold the same numbers, bit for bit."""
    if isinstance(one, Tensor) and one.is_meta:
        return one.shape == other.shape
    if isinstance(one, Tensor):
        return torch.equal(one.nan_to_num(), other.nan_to_num()) if one.is_floating_point() else torch.equal(one, other)
    if isinstance(one, dict):
        return all(same(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return True


def alike(one: Any, other: Any) -> bool:
    """Whether two outputs are the same but for rounding."""
    if isinstance(one, Tensor):
        return one.shape == other.shape and torch.allclose(
            one.double(), other.double(), rtol=0.01, atol=0.01, equal_nan=True
        )
    if isinstance(one, dict):
        return all(alike(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    return True


def told(error: Exception) -> str:
    """An error in one short line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
