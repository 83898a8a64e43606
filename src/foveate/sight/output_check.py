"""Checks that the recorded weights made the recorded output: weights times values must give it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from foveate.attention import Attended
from foveate.attention.call import Call
from foveate.sight import measures

ROWS_CHECKED = 4
"""Number of queries of a call, beside the last one, that are checked by default."""

MANY = 64
"""Number of heads, counted over all examples, from which on only two queries of each are checked."""

BLOCK = 64
"""Number of queries that are checked at once."""

TOLERANCE = {torch.float64: 1e-3, torch.float32: 1e-3, torch.bfloat16: 4e-2, torch.float16: 1e-2}
"""Allowed difference, relative to the largest of the checked outputs and values."""


@dataclass
class OutputCheck:
    """The largest difference between expected and actual outputs, and the largest that is allowed."""

    error: float
    allowed: float

    @property
    def passed(self) -> bool:
        return self.error <= self.allowed


def check_output(
    call: Call, attended: Attended, finish: Callable[[Tensor], Tensor] | None = None, all_rows: bool = False
) -> OutputCheck | None:
    """Compare the output of some queries, or of all, with that of the call; None if the call used dropout.

    `finish` computes the layer's output from the outputs of its heads (B, H, T, V), if `attended.output` is the former.
    """
    count = call.queries.shape[-2]
    if call.dropout or not attended.output.numel() or not call.keys.shape[-2]:
        return None
    parts = ROWS_CHECKED if math.prod(call.leading) < MANY else 1
    some = {count * part // parts for part in range(parts)} | {count - 1}
    queries = range(count) if all_rows else sorted(some)
    error, largest = 0.0, 0.0
    for start in range(0, len(queries), BLOCK):
        rows = list(queries[start : start + BLOCK])
        expected = _expected(call, attended, rows)
        if finish is not None:
            expected = finish(expected.to(call.values.dtype)).float()
        actual = attended.output[..., rows, :].float()
        difference = torch.where(actual.isfinite(), (expected.reshape(actual.shape) - actual).abs(), 0.0)
        error = max(error, float(difference.nan_to_num(nan=math.inf).max()))
        largest = max(largest, _largest(actual), _largest(expected))
    if finish is None:
        largest = max(largest, _largest(call.values.detach()))
    return OutputCheck(error, TOLERANCE.get(attended.output.dtype, 1e-3) * largest)


def _largest(values: Tensor) -> float:
    """The largest absolute value, ignoring NaN and infinities."""
    # Values are often a view of a larger tensor, which `aminmax` would copy.
    largest = max(float(values.amax()), -float(values.amin()))
    return largest if math.isfinite(largest) else float(values.nan_to_num(0.0, 0.0, 0.0).abs().amax())


def _expected(call: Call, attended: Attended, rows: list[int]) -> Tensor:
    """The outputs of some queries, computed from the weights, (..., rows, V)."""
    weights = measures.weights(call, slice(None), rows, slice(None))
    if attended.choice is not None:
        choice = attended.choice[..., rows].reshape(weights.shape[:-1]).unsqueeze(-1)
        weights = torch.zeros_like(weights).scatter_(-1, choice.clamp_min(0), 1.0) * (choice >= 0)
    return weights.reshape(*call.leading, len(rows), -1) @ call.values.detach().to(weights.dtype)
