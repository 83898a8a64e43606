"""Positions added or concatenated to the vectors of a sequence."""

import math
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import RelativePosition, sinusoidal
from foveate.attention.positions import Waves
from foveate.errors import UserError, one_of


class SinusoidalPositions(nn.Module):
    """The sine and cosine waves of `foveate.attention.sinusoidal`, for any length; the first position is `offset`."""

    def __init__(self, width: int, waves: Waves = "interleaved", offset: int = 0) -> None:
        super().__init__()
        self.width, self.waves, self.offset = width, waves, offset
        self._table = torch.empty(0, width)

    def forward(self, length: int, start: int = 0, device: torch.device | None = None) -> Float[Tensor, "T C"]:
        end, table = start + length, self._table
        if len(table) < end or table.device != device:
            self._table = table = sinusoidal(max(64, 2 * end), self.width, self.offset, device, self.waves)
        return table[start:end]

    def at(self, places: Int[Tensor, "B T"], end: int) -> Float[Tensor, "B T C"]:
        """Computes the encodings of any positions below `end`."""
        return self(end, 0, places.device)[places]


class LearnedPositions(nn.Module):
    """A learned vector for each of `length` positions. Longer sequences are an error.

    The first `offset` rows of the table are not positions (RoBERTa has 2).
    """

    def __init__(self, length: int, width: int, offset: int = 0) -> None:
        super().__init__()
        self.length, self.width, self.offset = length, width, offset
        self.table = nn.Parameter(torch.empty(offset + length, width))
        nn.init.normal_(self.table, std=width**-0.5)

    def forward(self, length: int, start: int = 0, device: torch.device | None = None) -> Float[Tensor, "T C"]:
        if start + length > self.length:
            raise UserError(
                f"a sequence has {start + length} positions, but only {self.length} were learned; "
                "shorten it, or use sinusoidal positions"
            )
        return self.table[self.offset + start : self.offset + start + length]

    def at(self, places: Int[Tensor, "B T"], end: int) -> Float[Tensor, "B T C"]:
        """Looks up any positions that were learned."""
        return self.table[places + self.offset if self.offset else places]


def longest_sequence(model: object) -> float:
    """The number of positions of a model's learned tables; infinite if it has none."""
    modules = model.modules() if isinstance(model, nn.Module) else ()
    return min((part.length for part in modules if isinstance(part, LearnedPositions)), default=math.inf)


class Unpositioned(nn.Module):
    """Returns a sequence unchanged, for models whose positions are a bias of attention."""

    def forward(
        self, x: Float[Tensor, "B T C"], start: int = 0, places: Int[Tensor, "P T"] | None = None
    ) -> Float[Tensor, "B T C"]:
        return x


class Positioned(nn.Module):
    """Adds positions to a sequence, or concatenates them as `[P, Z]`."""

    def __init__(
        self,
        positions: SinusoidalPositions | LearnedPositions,
        join: Literal["add", "concatenate"] = "add",
    ) -> None:
        super().__init__()
        one_of("join", join, ("add", "concatenate"))
        self.positions = positions
        self.join = join

    def forward(
        self, x: Float[Tensor, "B T C"], start: int = 0, places: Int[Tensor, "P T"] | None = None
    ) -> Float[Tensor, "B T W"]:
        """`start` is the position of the first vector of x. `places` are the positions of each row, for rows with
        padding on the left: none is above `start + T - 1`, and none above those that were learned."""
        if places is None:
            table = self.positions(x.shape[1], start, x.device).to(x.dtype)
        else:
            table = self.positions.at(places, start + x.shape[1]).to(x.dtype)
        if self.join == "concatenate":
            return torch.cat([table.expand(len(x), -1, -1), x], -1)
        if table.shape[-1] != x.shape[-1]:
            raise ValueError(
                f"positions of width {table.shape[-1]} cannot be added to vectors of width {x.shape[-1]}; "
                "make them equal, or concatenate"
            )
        return x + table


RADIUS = 64
"""Relative positions clamp distances to this radius."""

CONTEXTUAL = 64
"""Contextual positions count to this."""

PositionKind = Literal["none", "sinusoidal", "learned", "relative", "relative-projected", "rotary", "contextual"]
"""The kinds of positions of a stack of blocks, by the names that configs have for them."""


def are_concatenated(kind: PositionKind, join: Literal["add", "concatenate"]) -> bool:
    """Whether positions are put before their input, as [P, Z], which is twice as wide then."""
    return kind in ("sinusoidal", "learned") and join == "concatenate"


def position_encoding(
    kind: PositionKind,
    width: int,
    heads: int,
    longest: int,
    join: Literal["add", "concatenate"] = "add",
    offset: int = 0,
    waves: Waves = "interleaved",
) -> tuple[Positioned | Unpositioned, RelativePosition | None]:
    """The positions of a stack of blocks: a module for the input vectors, and for relative positions a bias that all
    blocks share (as in Raffel et al. 2020, https://arxiv.org/abs/1910.10683). Rotary, contextual and projected relative
    positions need neither: they are parts of each layer. `offset` is the first position of waves, or row of a learned
    table.
    """
    one_of("positions", kind, get_args(PositionKind))
    if kind == "relative":
        return Unpositioned(), RelativePosition(heads, RADIUS)
    if kind in ("none", "rotary", "relative-projected", "contextual"):
        return Unpositioned(), None
    if kind == "sinusoidal":
        return Positioned(SinusoidalPositions(width, waves, offset), join), None
    return Positioned(LearnedPositions(longest, width, offset), join), None
