"""The proof that weights and output belong together: weights times values give the output that was seen."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from foveate.attention import Attended
from foveate.attention.call import Call
from foveate.sight import measures

CHECKED = 4
"""So many queries of a call are checked, unless all are."""

BLOCK = 64
"""So many are checked at once."""

TOLERANCE = {torch.float64: 1e-3, torch.float32: 1e-3, torch.bfloat16: 4e-2, torch.float16: 1e-2}
"""How far an output may be from what the call says, relative to the largest of the checked outputs and values."""


@dataclass
class Proof:
    """The largest difference that was found, and the one that is allowed."""

    error: float
    allowed: float

    @property
    def holds(self) -> bool:
        return self.error <= self.allowed


def proof(
    call: Call, attended: Attended, finish: Callable[[Tensor], Tensor] | None = None, everywhere: bool = False
) -> Proof | None:
    """Compare the output of some queries, or of all, with what the call says; None where dropout was at work.

    `finish` is what the layer makes of its heads' outputs (B, H, T, V), where `attended.output` is that.
    """
    count = call.queries.shape[-2]
    if call.dropout or not attended.output.numel() or not call.keys.shape[-2]:
        return None
    places = range(count) if everywhere else sorted({count * part // CHECKED for part in range(CHECKED)} | {count - 1})
    found, largest = 0.0, 0.0
    for start in range(0, len(places), BLOCK):
        rows = list(places[start : start + BLOCK])
        expected = _expected(call, attended, rows)
        if finish is not None:
            expected = finish(expected.to(call.values.dtype)).float()
        actual = attended.output[..., rows, :].float()
        difference = torch.where(actual.isfinite(), (expected.reshape(actual.shape) - actual).abs(), 0.0)
        found = max(found, float(difference.nan_to_num(nan=math.inf).max()))
        largest = max(largest, _largest(actual), _largest(expected))
    if finish is None:
        largest = max(largest, _largest(call.values.detach()))
    return Proof(found, TOLERANCE.get(attended.output.dtype, 1e-3) * largest)


def _largest(numbers: Tensor) -> float:
    """The largest absolute value of those that are numbers."""
    found = max(float(numbers.amax()), -float(numbers.amin()))  # often cut out of a whole, which `aminmax` would copy
    return found if math.isfinite(found) else float(numbers.nan_to_num(0.0, 0.0, 0.0).abs().amax())


def _expected(call: Call, attended: Attended, rows: list[int]) -> Tensor:
    """The outputs of some queries by the weights, (..., rows, V)."""
    shares = measures.weights(call, slice(None), rows, slice(None))
    if attended.choice is not None:
        choice = attended.choice[..., rows].reshape(shares.shape[:-1]).unsqueeze(-1)
        shares = torch.zeros_like(shares).scatter_(-1, choice.clamp_min(0), 1.0) * (choice >= 0)
    return shares.reshape(*call.leading, len(rows), -1) @ call.values.detach().to(shares.dtype)
