"""Rotary positions: queries and keys are turned by an angle that grows with their position.

(Su et al. 2021, https://arxiv.org/abs/2104.09864.) The dot product of a turned query and a turned key depends on their
distance only. A part of each head's width may stay as it is (Black et al. 2022, GPT-NeoX-20B).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.errors import UserError, one_of


class Turn(ABC):
    """What positions do to projected queries and keys before they are compared."""

    @abstractmethod
    def turn(
        self, queries: Float[Tensor, "B H T D"], keys: Float[Tensor, "B G T E"]
    ) -> tuple[Float[Tensor, "B H T D"], Float[Tensor, "B G T E"]]:
        """Queries and keys of the same positions, as these positions change them."""


@dataclass(frozen=True, eq=False)
class Rotation(Turn):
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

    def turn(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        return self(queries), self(keys)


@dataclass(frozen=True, eq=False)
class QueryTemperature(Turn):
    """Queries grow with the logarithm of their position, `1 + temperature * log(1 + floor((position + 1) / span))`, so
    that weights over many keys stay sharp, and nothing turns: the layers without rotation of Llama 4 (Meta 2025)."""

    factor: Float[Tensor, "B 1 T 1"]

    @classmethod
    def of(cls, places: Int[Tensor, "B T"], temperature: float, span: int, dtype: torch.dtype) -> "QueryTemperature":
        """That of queries at these positions."""
        spans = torch.floor((places[:, None, :, None].float() + 1) / span)
        return cls((1 + temperature * spans.log1p()).to(dtype))

    def turn(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        return queries * self.factor, keys


@dataclass(frozen=True)
class RotaryScaling:
    """How a model with rotary positions was made to read texts that are `factor` times longer: slow rotations, which
    did not turn once in `original_length` tokens, are slowed down by that factor, fast ones stay as they are.

    - "linear": all rotations are slowed down (Chen et al. 2023, https://arxiv.org/abs/2306.15595).
    - "ntk": by a power of the factor that grows from 0 for the fastest to 1 for the slowest, as by a larger base
      (bloc97 2023, section 3.1 of https://arxiv.org/abs/2309.00071).
    - "llama3": those that turn fewer than `low` times in the original length, and those that turn up to `high` times
      in part (Llama 3.1, 2024).
    - "yarn": likewise with other proportions, and queries and keys grow by the factor `size` (Peng et al. 2023,
      https://arxiv.org/abs/2309.00071).
    """

    kind: Literal["linear", "ntk", "llama3", "yarn"]
    factor: float
    original_length: int = 8192
    low: float = 1.0
    high: float = 4.0
    size: float = 1.0
    whole: bool = True
    """The bounds of yarn are whole numbers of frequencies."""

    def __post_init__(self) -> None:
        one_of("rotary_scaling.kind", self.kind, ("linear", "ntk", "llama3", "yarn"))
        if self.factor <= 0 or self.original_length < 1 or not 0 < self.low < self.high:
            raise UserError(
                f"rotary positions of type '{self.kind}' cannot be scaled by a factor of {self.factor:g} from "
                f"{self.original_length} tokens on, between {self.low:g} and {self.high:g} turns"
            )

    def slowed(self, frequencies: Float[Tensor, "N"], base: float) -> Float[Tensor, "N"]:
        """The frequencies of rotations, from fast to slow."""
        if self.kind == "linear":
            return frequencies / self.factor
        if self.kind == "ntk":
            return frequencies / self.factor ** torch.linspace(0, 1, len(frequencies), device=frequencies.device)
        kept = self._kept_by_turns(frequencies) if self.kind == "llama3" else self._kept_by_place(frequencies, base)
        return (1 - kept) * frequencies / self.factor + kept * frequencies

    def _kept_by_turns(self, frequencies: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
        """How much of each frequency stays: a share of 0 to 1 that grows with its turns in the original length."""
        turns = self.original_length * frequencies / (2 * math.pi)
        return ((turns - self.low) / (self.high - self.low)).clamp(0, 1)

    def _kept_by_place(self, frequencies: Float[Tensor, "N"], base: float) -> Float[Tensor, "N"]:
        """Likewise, a share that falls with the number of a frequency."""
        count = len(frequencies)
        first, last = (
            count * math.log(self.original_length / (turns * 2 * math.pi)) / math.log(base)
            for turns in (self.high, self.low)
        )
        if self.whole:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, 2 * count - 1)
        places = torch.arange(count, dtype=torch.float32, device=frequencies.device)
        return 1 - ((places - first) / (last - first or 0.001)).clamp(0, 1)


class Rotary(nn.Module):
    """Makes the rotation of any positions: R numbers of each head turn, by angles of R/2 frequencies."""

    def __init__(self, width: int, base: float = 10_000.0, scaling: RotaryScaling | None = None) -> None:
        """`width` is R; the frequencies are `base ** (-2 i / R)`, or scaled. Raises UserError for an odd width."""
        super().__init__()
        if width % 2:
            raise UserError(f"rotary positions turn pairs of numbers, so their width must be even, not {width}")
        self.width, self.base, self.scaling = width, base, scaling

    def forward(self, places: Int[Tensor, "B T *K"], dtype: torch.dtype) -> Rotation:
        """The rotation of tokens at these positions; with B = 1 all rows have the same."""
        powers = torch.arange(0, self.width, 2, dtype=torch.int64, device=places.device).float() / self.width
        frequencies, size = 1.0 / self.base**powers, 1.0
        if self.scaling is not None:
            frequencies, size = self.scaling.slowed(frequencies, self.base), self.scaling.size
        angles = self.coordinates(places).float() * frequencies
        angles = torch.cat([angles, angles], -1)
        return Rotation((size * angles.cos()).to(dtype), (size * angles.sin()).to(dtype))

    def coordinates(self, places: Int[Tensor, "B T *K"]) -> Int[Tensor, "B 1 T #N"]:
        """What each of the N frequencies is multiplied by."""
        return places[:, None, :, None]


class SectionedRotary(Rotary):
    """Rotary positions of several coordinates, such as the time, the row and the column of a patch of a film: each of
    them turns its section of the frequencies (Qwen2-VL, Wang et al. 2024, https://arxiv.org/abs/2409.12191)."""

    def __init__(self, sections: Sequence[int], base: float = 10_000.0, scaling: RotaryScaling | None = None) -> None:
        """`sections` are how many frequencies each coordinate has; the width of a head is twice their sum."""
        super().__init__(2 * sum(sections), base, scaling)
        self.sections = tuple(sections)

    def coordinates(self, places: Int[Tensor, "B T K"]) -> Int[Tensor, "B 1 T N"]:
        if places.shape[-1] != len(self.sections):
            raise ValueError(f"positions have {places.shape[-1]} coordinates, but {len(self.sections)} sections turn")
        parts = [places[..., [part]].expand(-1, -1, count) for part, count in enumerate(self.sections)]
        return torch.cat(parts, -1)[:, None]


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
