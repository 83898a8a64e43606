"""Rotary positions: queries and keys are turned by an angle that grows with their position.

(Su et al. 2021, https://arxiv.org/abs/2104.09864.) The dot product of a turned query and a turned key depends on their
distance only. A part of each head's width may stay as it is (Black et al. 2022, GPT-NeoX-20B).
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.errors import UserError


@dataclass(frozen=True, eq=False)
class Rotation:
    """The cosine and sine of each position's angles; turns the heads' queries or keys of these positions."""

    cosine: Float[Tensor, "B 1 T R"]
    sine: Float[Tensor, "B 1 T R"]

    def __call__(self, x: Float[Tensor, "B H T D"]) -> Float[Tensor, "B H T D"]:
        """Turns the first R of the D numbers: number i and number i + R/2 are a point in the plane."""
        width = self.cosine.shape[-1]
        turned, rest = x[..., :width], x[..., width:]
        first, second = turned.chunk(2, -1)
        turned = turned * self.cosine + torch.cat([-second, first], -1) * self.sine
        return torch.cat([turned, rest], -1) if rest.shape[-1] else turned


class Rotary(nn.Module):
    """Makes the rotation of any positions: R numbers of each head turn, by angles of R/2 frequencies."""

    def __init__(self, width: int, base: float = 10_000.0) -> None:
        """`width` is R; the frequencies are `base ** (-2 i / R)`. Raises UserError for an odd width."""
        super().__init__()
        if width % 2:
            raise UserError(f"rotary positions turn pairs of numbers, so their width must be even, not {width}")
        self.width, self.base = width, base

    def forward(self, places: Int[Tensor, "B T"], dtype: torch.dtype) -> Rotation:
        """The rotation of tokens at these positions; with B = 1 all rows have the same."""
        powers = torch.arange(0, self.width, 2, dtype=torch.int64, device=places.device).float() / self.width
        angles = places[:, None, :, None].float() * (1.0 / self.base**powers)
        angles = torch.cat([angles, angles], -1)
        return Rotation(angles.cos().to(dtype), angles.sin().to(dtype))


class GridRotary(nn.Module):
    """The same for places of a grid: half of the angles turn with the row, half with the column (DINOv3, Siméoni et al.
    2025, https://arxiv.org/abs/2508.10104).

    Rows and columns lie evenly between -1 and 1, whatever the size of the grid.
    """

    def __init__(self, width: int, base: float = 100.0) -> None:
        """`width` is that of a head; the frequencies are `base ** (-4 i / width)`. Raises UserError for a width that is
        not a multiple of 4."""
        super().__init__()
        if width % 4:
            raise UserError(f"rotary positions in a grid need heads whose width is a multiple of 4, not {width}")
        self.width, self.base = width, base

    def forward(self, grid: tuple[int, int], tokens: int, like: Tensor) -> Rotation:
        """The rotation of the grid's places row by row; `tokens` before them do not turn."""
        powers = torch.arange(0, 1, 4 / self.width, device=like.device)
        rows, columns = (2 * (torch.arange(count, device=like.device) + 0.5) / count - 1 for count in grid)
        places = torch.stack([rows[:, None].expand(grid), columns.expand(grid)], -1).flatten(0, 1)
        angles = (2 * math.pi * places[..., None] / self.base**powers).flatten(1)
        angles = F.pad(torch.cat([angles, angles], -1), (0, 0, tokens, 0))[None, None]
        return Rotation(angles.cos().to(like.dtype), angles.sin().to(like.dtype))
