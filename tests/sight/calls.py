"""Attention calls of every kind, and their weights computed densely in double precision."""

import copy
import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from foveate.attention import (
    Additive,
    Biaffine,
    Bias,
    Dot,
    LinearDistance,
    Mask,
    RelativeKeys,
    RelativePosition,
    ScaledDot,
    Score,
    Soft,
    SoftCapped,
    causal,
    padding,
    segments,
    window,
)
from foveate.attention.biases import as_bias
from foveate.attention.call import Call
from foveate.attention.masks import as_mask

D = 5
HEADS = ((2, 3, 19, D), (2, 3, 23, D))
GROUPS = ((2, 3, 2, 19, D), (2, 3, 1, 23, D))
LOW = torch.finfo(torch.float32).min


def make(
    shapes: tuple[tuple[int, ...], tuple[int, ...]] = HEADS,
    score: Score | None = None,
    mask: Mask | Tensor | None = None,
    bias: Bias | Tensor | None = None,
    sinks: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Call:
    """A call with random queries and keys that gradients would reach, and values without width."""
    score = ScaledDot() if score is None else score
    q, k = (torch.randn(shape).to(dtype).requires_grad_() for shape in shapes)
    return Call(
        score.queries(q),
        score.keys(k),
        k[..., :0],
        score,
        None if mask is None else as_mask(mask),
        None if bias is None else as_bias(bias),
        Soft(sinks),
        dropout=0.0,
        full=False,
    )


def some(*shape: int) -> Tensor:
    """A random mask whose first row allows nothing, and whose last row allows all."""
    mask = torch.rand(shape) < 0.6
    mask[..., 0, :], mask[..., -1, :] = False, True
    return mask


def drawn(module: nn.Module) -> nn.Module:
    """A module whose parameters are not zero."""
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


def last_row(numbers: float) -> Tensor:
    """A bias for every example that hides the keys from 7 on, and all from the last query."""
    bias = torch.zeros(2, 1, 19, 23)
    bias[..., 7:], bias[..., -1, :] = numbers, numbers
    return bias


CALLS: dict[str, Callable[[], Call]] = {
    "no mask": make,
    "dot": lambda: make(score=Dot()),
    "causal": lambda: make(mask=causal()),
    "causal later": lambda: make(mask=causal(4)),
    "causal earlier": lambda: make(mask=causal(-7)),
    "padding": lambda: make(mask=padding(torch.tensor([0, 17]))),
    "causal and padding": lambda: make(mask=causal() & padding(torch.tensor([23, 11]))),
    "window": lambda: make(mask=window(3)),
    "window far": lambda: make(mask=window(2, start=15)),
    "segments": lambda: make(mask=segments(torch.tensor([2, 13, 4]), torch.tensor([11, 5, 7]))),
    "given for each head": lambda: make(mask=some(3, 19, 23)),
    "given for each example": lambda: make(mask=some(2, 1, 19, 23) & causal(9)),
    "given keys": lambda: make(mask=torch.rand(2, 1, 1, 23) < 0.5),
    "given queries": lambda: make(mask=torch.rand(2, 3, 19, 1) < 0.5),
    "bias": lambda: make(bias=torch.randn(3, 19, 23)),
    "bias for each key": lambda: make(bias=torch.randn(2, 1, 1, 23), mask=causal()),
    "bias of -inf": lambda: make(bias=last_row(-torch.inf)),
    "bias of the least number": lambda: make(bias=last_row(LOW)),
    "linear distance": lambda: make(bias=LinearDistance(torch.rand(3))),
    "relative position": lambda: make(bias=drawn(RelativePosition(3, 4)), mask=causal()),
    "relative keys": lambda: make(bias=RelativeKeys(D, 4)),
    "grouped heads": lambda: make(GROUPS, mask=causal() & padding(torch.tensor([23, 11]))),
    "grouped heads, mask and bias": lambda: make(
        GROUPS, mask=some(3, 1, 19, 23), bias=LinearDistance(torch.rand(3, 2))
    ),
    "soft-capped": lambda: make(score=SoftCapped(ScaledDot(3.0), 2.0), mask=causal()),
    "sinks": lambda: make(mask=causal(), sinks=torch.tensor([-3.0, 0.0, 1.0])),
    "sinks of groups": lambda: make(GROUPS, mask=some(2, 1, 1, 19, 23), sinks=torch.randn(3, 2)),
    "additive": lambda: make(score=Additive(D, D, 7), mask=causal()),
    "additive relu": lambda: make(score=Additive(D, D, 7, torch.relu)),
    "biaffine": lambda: make(score=Biaffine(D, D)),
    "no heads": lambda: make(((3, 19, D), (3, 23, D)), mask=causal(4)),
    "no leading": lambda: make(((19, D), (23, D)), mask=causal()),
    "broadcast": lambda: make(((2, 3, 19, D), (23, D)), mask=padding(torch.tensor([3, 23]))),
    "one query": lambda: make(((2, 3, 1, D), (2, 3, 23, D))),
    "one key": lambda: make(((2, 3, 19, D), (2, 3, 1, D)), mask=causal(-3)),
    "bf16": lambda: make(mask=causal(), dtype=torch.bfloat16),
    "bf16, grouped heads": lambda: make(GROUPS, mask=window(5), dtype=torch.bfloat16),
    "bf16, bias and sinks": lambda: make(bias=torch.randn(3, 19, 23), sinks=torch.randn(3), dtype=torch.bfloat16),
}


def dense(call: Call) -> Tensor:
    """All weights, (B, H, T, S), in double precision, by exponentials and sums."""
    with torch.no_grad():
        call = double(call)
        scores = call.scores()
        scores = scores.expand(*call.leading, *scores.shape[-2:])
        places = scores
        if call.select.sinks is not None:
            sinks = call.select.sinks[..., None, None].expand(*scores.shape[:-1], 1)
            places = torch.cat([scores, sinks], -1)
        highest = places.amax(-1, keepdim=True).clamp(min=torch.finfo(torch.float64).min)
        exponentials = (scores - highest).exp()
        total = (places - highest).exp().sum(-1, keepdim=True)
        weights = exponentials / total.clamp(min=1e-300)
    heads = math.prod(call.leading[1:])
    return weights.reshape(call.leading[0] if call.leading else 1, heads, *weights.shape[-2:])


def double(call: Call) -> Call:
    """The same call in double precision."""
    queries, keys = call.queries.double(), call.keys.double()
    score = copy.deepcopy(call.score).double() if isinstance(call.score, nn.Module) else call.score
    sinks = None if call.select.sinks is None else call.select.sinks.double()
    return replace(call, queries=queries, keys=keys, score=score, bias=_double(call.bias), select=Soft(sinks))


def _double(bias: Bias | None) -> Bias | None:
    if bias is None:
        return None
    if isinstance(bias, nn.Module):
        return copy.deepcopy(bias).double()
    if isinstance(bias, LinearDistance):
        return LinearDistance(bias.slopes.double(), bias.start)
    return as_bias(bias.tensors()[0].double())
