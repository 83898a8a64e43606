"""Attention problems of every kind: what the tests of this folder compute in more than one way."""

import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from foveate.attention import (
    Additive,
    Biaffine,
    Bias,
    BucketedPosition,
    Dot,
    Gaussian,
    LinearDistance,
    Mask,
    RelativeGridKeys,
    RelativeGridPosition,
    RelativeKeys,
    RelativePosition,
    ScaledDot,
    Score,
    Selection,
    Soft,
    SoftCapped,
    around,
    attend,
    attend_full,
    causal,
    grid_window,
    padding,
    same_text,
    segments,
    window,
)

Shape = tuple[int, ...]

SHAPES: dict[str, tuple[Shape, Shape, Shape]] = {
    "heads": ((2, 3, 11, 5), (2, 3, 13, 5), (2, 3, 13, 5)),
    "other values": ((2, 3, 13, 5), (2, 3, 11, 5), (2, 3, 11, 7)),
    "one query": ((2, 3, 1, 5), (2, 3, 13, 5), (2, 3, 13, 5)),
    "one key": ((2, 3, 11, 5), (2, 3, 1, 5), (2, 3, 1, 5)),
    "grouped heads": ((2, 3, 2, 7, 5), (2, 3, 1, 11, 5), (2, 3, 1, 11, 5)),
    "no leading": ((17, 5), (13, 5), (13, 5)),
    "broadcast": ((2, 3, 11, 5), (3, 7, 5), (7, 5)),
}


def lengths(leading: Shape, size: int) -> Tensor:
    """Random lengths, the first of them 0: queries of that example may look nowhere."""
    drawn = torch.randint(1, size + 1, leading[:1])
    return drawn * (torch.arange(drawn.numel()).reshape(drawn.shape) > 0)


def given(leading: Shape, queries: int, keys: int) -> Tensor:
    """A random mask, alike for all heads, whose first row allows nothing."""
    mask = torch.rand(*leading[:1], *(1,) * len(leading[1:]), queries, keys) < 0.6
    mask[..., 0, :] = False
    return mask


def centres(leading: Shape, queries: int, keys: int) -> Tensor:
    """Random places among the keys and beyond both ends, alike for all heads."""
    return torch.rand(*leading[:1], *(1,) * len(leading[1:]), queries) * (keys + 8) - 4


def halves(queries: int, keys: int) -> Mask:
    return segments(torch.tensor([queries // 2, queries - queries // 2]), torch.tensor([keys // 3, keys - keys // 3]))


MASKS: dict[str, Callable[[Shape, int, int], Mask | Tensor | None]] = {
    "none": lambda leading, t, s: None,
    "causal": lambda leading, t, s: causal(),
    "causal later": lambda leading, t, s: causal(2),
    "causal earlier": lambda leading, t, s: causal(-3),
    "padding": lambda leading, t, s: padding(lengths(leading, s)),
    "causal and padding": lambda leading, t, s: causal() & padding(lengths(leading, s)),
    "window": lambda leading, t, s: window(2),
    "window and causal": lambda leading, t, s: window(3) & causal(),
    "grid window": lambda leading, t, s: grid_window(1, 3, 1),
    "around": lambda leading, t, s: around(centres(leading, t, s), 2.5),
    "segments": lambda leading, t, s: halves(t, s),
    "same text": lambda leading, t, s: same_text(torch.randint(3, (*leading[:1], max(t, s)))) if leading else None,
    "given": lambda leading, t, s: given(leading, t, s),
    "given and window": lambda leading, t, s: given(leading, t, s) & window(4),
}

BIASES: dict[str, Callable[[Shape, int, int, int], Bias | Tensor | None]] = {
    "none": lambda leading, t, s, d: None,
    "given": lambda leading, t, s, d: torch.randn(*leading[-1:], t, s),
    "given, learned": lambda leading, t, s, d: torch.randn(
        *leading[:1], *(1,) * len(leading[1:]), t, 1
    ).requires_grad_(),
    "linear distance": lambda leading, t, s, d: LinearDistance(torch.rand(leading[-1:])),
    "gaussian": lambda leading, t, s, d: Gaussian(centres(leading, t, s).requires_grad_(), 1.5),
    "bucketed position": lambda leading, t, s, d: (
        _drawn(BucketedPosition(leading[-1], 8, 5, True)) if leading else None
    ),
    "relative position": lambda leading, t, s, d: _drawn(RelativePosition(leading[-1], 3)) if leading else None,
    "relative keys": lambda leading, t, s, d: RelativeKeys(d, 2),
    "grid position": lambda leading, t, s, d: (
        _drawn(RelativeGridPosition(leading[-1], 3)).with_grids((1, t), (1, s)) if leading else None
    ),
    "grid keys": lambda leading, t, s, d: RelativeGridKeys(d, 5).with_grids((t, 1), (s, 1)),
}

SCORES: dict[str, Callable[[int, int], Score]] = {
    "dot": lambda d, e: Dot(),
    "scaled dot": lambda d, e: ScaledDot(),
    "biaffine": lambda d, e: Biaffine(d, e),
    "additive": lambda d, e: Additive(d, e, 5),
    "additive relu": lambda d, e: Additive(d, e, 5, torch.relu),
    "soft-capped": lambda d, e: SoftCapped(Dot(), 1.5),
}


def _drawn(module: nn.Module) -> nn.Module:
    """A module whose parameters are not zero."""
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


@dataclass
class Problem:
    """One attention call and the gradients that come back to its output and its log-sum-exp."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    score: Score
    mask: Mask | Tensor | None
    bias: Bias | Tensor | None
    to_output: Tensor
    to_log_sum_exp: Tensor

    def to(self, dtype: torch.dtype) -> "Problem":
        return Problem(**{name: part if name == "mask" else _to(part, dtype) for name, part in vars(self).items()})

    @property
    def learned(self) -> dict[str, Tensor]:
        """Every tensor that has a gradient."""
        tensors = {"queries": self.queries, "keys": self.keys, "values": self.values}
        for name, part in (("score", self.score), ("bias", self.bias)):
            if isinstance(part, nn.Module):
                tensors |= {f"{name}.{inner}": tensor for inner, tensor in part.named_parameters()}
            elif isinstance(part, Gaussian):
                tensors[f"{name}.centres"] = part.centres
            elif isinstance(part, Tensor) and part.requires_grad:
                tensors[name] = part
        return tensors


def _to(part: object, dtype: torch.dtype) -> object:
    if isinstance(part, Tensor):
        return part.detach().to(dtype).requires_grad_(part.requires_grad)
    if isinstance(part, nn.Module):
        return copy.deepcopy(part).to(dtype)
    if isinstance(part, Gaussian):
        return replace(part, centres=_to(part.centres, dtype))
    return replace(part, slopes=part.slopes.to(dtype)) if isinstance(part, LinearDistance) else part


def problem(shape: str, score: str = "scaled dot", mask: str = "none", bias: str = "none") -> Problem:
    queries, keys, values = (torch.randn(sizes).requires_grad_() for sizes in SHAPES[shape])
    leading = torch.broadcast_shapes(queries.shape[:-2], keys.shape[:-2], values.shape[:-2])
    t, s, width = queries.shape[-2], keys.shape[-2], queries.shape[-1]
    return Problem(
        queries,
        keys,
        values,
        SCORES[score](width, width),
        MASKS[mask](leading, t, s),
        BIASES[bias](leading, t, s, width),
        torch.randn(*leading, t, values.shape[-1]),
        torch.randn(*leading, t),
    )


def solve(
    p: Problem,
    kernel: str,
    backward: bool = True,
    full: bool = True,
    autocast: bool = False,
    select: Selection | None = None,
) -> dict[str, Tensor]:
    """Output, log-sum-exp and all gradients; without `full`, as if nobody asked for the log-sum-exp."""
    with torch.set_grad_enabled(backward), torch.autocast("cpu", torch.bfloat16, autocast):
        call = {"score": p.score, "mask": p.mask, "bias": p.bias, "kernel": kernel, "select": select or Soft()}
        if full:
            attended = attend_full(p.queries, p.keys, p.values, **call)
            found = {"output": attended.output, "log-sum-exp": attended.log_sum_exp}
        else:
            found = {"output": attend(p.queries, p.keys, p.values, **call)}
    if backward:
        returning = [p.to_output, p.to_log_sum_exp.to(found["log-sum-exp"].dtype)] if full else [p.to_output]
        gradients = torch.autograd.grad(list(found.values()), list(p.learned.values()), returning, allow_unused=True)
        named = zip(p.learned, gradients, strict=True)
        found |= {f"gradient of {name}": gradient for name, gradient in named if gradient is not None}
    return {name: tensor.detach() for name, tensor in found.items()}


def every(*axes: dict[str, object]) -> list[tuple[str, ...]]:
    """Every combination of the axes, each with one shape: they take turns, seven of them, so that all sorts meet."""
    return [(shape, *names) for shape, names in zip(itertools.cycle(SHAPES), itertools.product(*axes), strict=False)]
