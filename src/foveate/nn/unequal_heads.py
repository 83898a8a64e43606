"""Projections to heads of different widths (Vaswani et al. 2017 have equal ones).

All heads attend in one call: each is padded with zeros to the width of the widest, which changes no product. Only the
numbers that count have weights: a projection has as many outputs as the widths sum up to.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.errors import UserError


def widest(head_widths: Sequence[int], heads: int) -> int:
    """The width to which all heads are padded. Raises UserError unless there is a width for each head."""
    if len(head_widths) != heads:
        raise UserError(f"{len(head_widths)} head_widths are given for {heads} heads")
    return max(head_widths)


def head_factors(head_widths: Sequence[int], like: Tensor) -> Float[Tensor, "H 1 D"]:
    """Returns the factors of padded queries, so that a dot product divided by sqrt(widest) is divided by the root of
    the head's own width; 0 in the padding."""
    most = max(head_widths)
    factors = like.new_zeros(len(head_widths), 1, most)
    for head, own in enumerate(head_widths):
        factors[head, :, :own] = math.sqrt(most / own)
    return factors


class UnequalProjection(nn.Module):
    """Projects an input to heads of these widths, each padded to the widest one.

    With `rescale`, each head is multiplied by sqrt(widest / its own width), so that a dot product divided by
    sqrt(widest) is divided by the root of the head's own width.
    """

    def __init__(self, width: int, head_widths: Sequence[int], bias: bool, rescale: bool = False) -> None:
        super().__init__()
        self.head_widths, self.widest = tuple(head_widths), max(head_widths)
        self.linear = nn.Linear(width, sum(head_widths), bias)
        self.factors = [math.sqrt(self.widest / own) if rescale else 1.0 for own in head_widths]

    def forward(self, x: Float[Tensor, "... T C"]) -> Float[Tensor, "... T P"]:
        heads = self.linear(x).split(self.head_widths, -1)
        padded = [
            F.pad(head * factor if factor != 1 else head, (0, self.widest - head.shape[-1]))
            for head, factor in zip(heads, self.factors, strict=True)
        ]
        return torch.cat(padded, -1)


class UnequalOutput(nn.Module):
    """Projects the concatenated heads, without their padding, by one matrix (sum of widths) x C."""

    def __init__(self, head_widths: Sequence[int], width: int, bias: bool) -> None:
        super().__init__()
        self.head_widths, self.widest = tuple(head_widths), max(head_widths)
        self.linear = nn.Linear(sum(head_widths), width, bias)

    def forward(self, x: Float[Tensor, "B T P"]) -> Float[Tensor, "B T C"]:
        heads = x.unflatten(-1, (-1, self.widest)).unbind(-2)
        return self.linear(torch.cat([head[..., :own] for head, own in zip(heads, self.head_widths, strict=True)], -1))
