"""Checks that the recorded weights made the recorded output: weights times values must give it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from foveate.attention import Attended
from foveate.attention.call import Call
from foveate.attention.selection import Weighing, weights
from foveate.sight.blocks import Block, Box, compute_dtype, measurement_context, weight_blocks
from foveate.sight.given_weights import MadeProduct

ROWS_CHECKED = 4
"""Number of queries of a call, beside the last one, that are checked by default."""

MANY = 64
"""Number of heads, counted over all examples, from which on only two queries of each are checked."""

EXAMPLES = 4
"""Number of examples in a sample."""

STRIDE = 7919
"""How far the samples of two calls are apart, modulo the number of queries or examples: a prime, so that many calls
have samples everywhere."""

BLOCK = 64
"""Number of queries that are checked at once."""

QUICK = {torch.float32, torch.float64}
"""Types of numbers in which the eager kernel is exact enough to be compared with."""

TOLERANCE = {torch.float64: 1e-3, torch.float32: 1e-3, torch.bfloat16: 4e-2, torch.float16: 1e-2}
"""Allowed difference, relative to the largest of the checked outputs and values."""

WHOLE: Box = ()
"""All examples and heads."""


@dataclass
class OutputCheck:
    """The largest difference between expected and actual outputs, and the largest that is allowed."""

    error: float
    allowed: float

    @property
    def passed(self) -> bool:
        return self.error <= self.allowed


def check_output(
    call: Call,
    attended: Attended,
    queries: Sequence[int],
    box: Box = WHOLE,
    finish: Callable[[Tensor], Tensor] | None = None,
) -> OutputCheck | None:
    """Compare the output of some queries, examples and heads with that of the call; None if the call used dropout.

    `finish` computes the layer's output from the outputs of its heads (B, H, T, V), if `attended.output` is the former.
    """
    if call.dropout or not attended.output.numel() or not call.keys.shape[-2]:
        return None
    values = call.values.detach().expand(*call.leading, *call.values.shape[-2:])[box]
    outputs, error, largest = attended.output.detach()[box], 0.0, 0.0
    for start in range(0, len(queries), BLOCK):
        rows = queries[start : start + BLOCK]
        expected = _expected(call, attended, rows, box, values)
        if finish is not None:
            expected = finish(expected.to(call.values.dtype)).float()
        actual = outputs[..., rows.start : rows.stop, :] if isinstance(rows, range) else outputs[..., list(rows), :]
        actual = actual.float()
        difference = torch.where(actual.isfinite(), (expected.reshape(actual.shape) - actual).abs(), 0.0)
        error = max(error, float(difference.nan_to_num(nan=math.inf).max()))
        largest = max(largest, _largest(actual), _largest(expected))
    if finish is None:
        largest = max(largest, _largest(values))
    return OutputCheck(error, TOLERANCE.get(attended.output.dtype, 1e-3) * largest)


def check_product(product: MadeProduct, queries: Sequence[int]) -> OutputCheck | None:
    """Compare some queries of the output of a model's own product with what weights and values give."""
    if not product.output.numel() or not product.weights.numel():
        return None
    expected, actual = product.expected(queries), product.output[:, :, list(queries)].detach()
    actual = actual.to(expected.dtype)
    difference = torch.where(actual.isfinite(), (expected - actual).abs(), 0.0)
    error = float(difference.nan_to_num(nan=math.inf).max())
    largest = max(map(_largest, (actual, expected, product.values.detach())))
    return OutputCheck(error, TOLERANCE.get(product.output.dtype, 1e-3) * largest)


def some_queries(call: Call) -> Sequence[int]:
    """A few queries of a call, the first and the last among them: causal masks show there."""
    count = call.queries.shape[-2]
    parts = ROWS_CHECKED if math.prod(call.leading) < MANY else 1
    return sorted({count * part // parts for part in range(parts)} | {count - 1})


def check_sample(call: Call, attended: Attended, number: int) -> OutputCheck | None:
    """Compare the output of one query of all heads of a few examples; with another `number` of others.

    That is enough for a call of `attend`, whose arguments cannot be misunderstood. What is compared first is what the
    eager kernel computes, in a third of the time of `check_output`, which decides where that is not close enough.
    """
    row = number * STRIDE % max(1, call.queries.shape[-2])
    rows, box = range(row, row + 1), some_examples(call, number)
    soft = attended.choice is None and attended.weights is None and not call.dropout
    if soft and call.keys.dtype == attended.output.dtype in QUICK:
        seen = call.around(rows)
        scores, rule = call.scores(seen), call.select.for_queries(call.queries[..., seen.start : seen.stop, :])
        shares = rule.weigh(scores)[..., -1:, :] if isinstance(rule, Weighing) else weights(scores)
        shares = shares.detach().expand(*call.leading, *shares.shape[-2:])[box]
        values = call.values.detach().expand(*call.leading, *call.values.shape[-2:])[box]
        actual = attended.output.detach()[box][..., row : row + 1, :]
        if actual.numel():
            error, largest = (float(part.abs().amax()) for part in (shares @ values - actual, actual))
            if (check := OutputCheck(error, TOLERANCE[actual.dtype] * largest)).passed:
                return check
    return check_output(call, attended, rows, box)


def some_examples(call: Call, number: int) -> Box:
    """All heads of a few examples, or of all if there are no more; with another `number` others."""
    if not call.leading:
        return WHOLE
    count, *others = call.leading
    first = number * STRIDE % max(1, count - EXAMPLES + 1)
    return (slice(first, min(count, first + EXAMPLES)), *(slice(0, size) for size in others))


def _largest(values: Tensor) -> float:
    """The largest absolute value, ignoring NaN and infinities."""
    # Values are often a view of a larger tensor, which `aminmax` would copy.
    largest = max(float(values.amax()), -float(values.amin()))
    return largest if math.isfinite(largest) else float(values.nan_to_num(0.0, 0.0, 0.0).abs().amax())


def _expected(call: Call, attended: Attended, rows: Sequence[int], box: Box, values: Tensor) -> Tensor:
    """The outputs of some queries, computed from the weights, (..., rows, V)."""
    expected = values.new_zeros(*values.shape[:-2], len(rows), values.shape[-1], dtype=compute_dtype(call))
    choice = None if attended.choice is None else attended.choice.expand(*call.leading, -1)[box][..., list(rows)]
    with measurement_context(call):
        for block in weight_blocks(call, rows, box or None):
            shares = block.weights if choice is None else _one_hot(block.query_view(choice[..., None]), block)
            block.query_view(expected)[...] = shares @ values[block.box][..., block.columns, :].to(shares.dtype)
    return expected


def _one_hot(choice: Tensor, block: Block) -> Tensor:
    """Weights of 1 for the chosen keys (..., R, 1) and 0 for all others, of -1 for all."""
    places = torch.arange(block.columns.start, block.columns.stop, device=choice.device)
    return (places == choice).to(block.weights.dtype)
