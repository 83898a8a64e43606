"""Positions joined to the vectors of a sequence."""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import RelativePosition, sinusoidal
from foveate.errors import UserError, one_of


class SinusoidalPositions(nn.Module):
    """The interleaved sine and cosine waves of `foveate.attention.sinusoidal`, for any length."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self._table = torch.empty(0, width)

    def forward(self, length: int, start: int = 0, device: torch.device | None = None) -> Float[Tensor, "T C"]:
        end, table = start + length, self._table
        if len(table) < end or table.device != device:
            self._table = table = sinusoidal(max(64, 2 * end), self.width, device=device)
        return table[start:end]


class LearnedPositions(nn.Module):
    """A learned vector for each of the first `length` positions; there are none beyond."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.table = nn.Parameter(torch.empty(length, width))
        nn.init.normal_(self.table, std=width**-0.5)

    def forward(self, length: int, start: int = 0, device: torch.device | None = None) -> Float[Tensor, "T C"]:
        if start + length > len(self.table):
            raise UserError(
                f"a sequence of {start + length} positions, but only {len(self.table)} were learned; "
                "shorten it, or use sinusoidal positions"
            )
        return self.table[start : start + length]


def longest_sequence(model: object) -> float:
    """How many positions all parts of a model know; without limit where none of them are learned."""
    modules = model.modules() if isinstance(model, nn.Module) else ()
    return min((len(part.table) for part in modules if isinstance(part, LearnedPositions)), default=math.inf)


class Unpositioned(nn.Module):
    """A sequence as it is, whose order something else tells."""

    def forward(self, x: Float[Tensor, "B T C"], start: int = 0) -> Float[Tensor, "B T C"]:
        return x


class Positioned(nn.Module):
    """A sequence with its positions added, or concatenated before it: `[P, Z]`."""

    def __init__(
        self,
        positions: SinusoidalPositions | LearnedPositions,
        join: Literal["add", "concatenate"] = "add",
    ) -> None:
        super().__init__()
        one_of("join", join, ("add", "concatenate"))
        self.positions = positions
        self.join = join

    def forward(self, x: Float[Tensor, "B T C"], start: int = 0) -> Float[Tensor, "B T P"]:
        """The first vector of x stands at position `start`."""
        table = self.positions(x.shape[1], start, x.device).to(x.dtype)
        if self.join == "concatenate":
            return torch.cat([table.expand(len(x), -1, -1), x], -1)
        if table.shape[-1] != x.shape[-1]:
            raise ValueError(
                f"positions of width {table.shape[-1]} cannot be added to vectors of width {x.shape[-1]}; "
                "make them equal, or concatenate"
            )
        return x + table


RADIUS = 64
"""Distances beyond this are one, where positions are relative."""


def position_encoding(
    kind: Literal["sinusoidal", "learned", "relative"], width: int, heads: int, longest: int
) -> tuple[Positioned | Unpositioned, RelativePosition | None]:
    """What tells a stack of blocks the order of its tokens: what is done to their vectors, and what all blocks add to
    the scores of their self-attention (as in Raffel et al. 2020, https://arxiv.org/abs/1910.10683)."""
    one_of("positions", kind, ("sinusoidal", "learned", "relative"))
    if kind == "relative":
        return Unpositioned(), RelativePosition(heads, RADIUS)
    return Positioned(SinusoidalPositions(width) if kind == "sinusoidal" else LearnedPositions(longest, width)), None
