"""Biases that depend on where query and key are in a grid, such as the patches of a picture, row by row."""

from copy import copy
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention.biases import Bias, LinearDistance, PositionalBias
from foveate.attention.shapes import positions_in, precise

Size = tuple[int, int]
"""Rows and columns of a grid."""

Grids = TypeVar("Grids", bound="_OfGrids")


class _OfGrids(nn.Module, Bias):
    """A bias for queries in one grid and keys in another (or the same) over the same picture."""

    queries: Size = (1, 1)
    keys: Size = (1, 1)

    def with_grids(self: Grids, queries: Size, keys: Size | None = None) -> Grids:
        """The same bias, with the same parameters, for grids of these sizes; by default keys are in the same one."""
        other = copy(self)
        other.queries, other.keys = queries, queries if keys is None else keys
        return other


@dataclass(frozen=True, eq=False)
class LinearGridDistance(LinearDistance):
    """`-slope * distance` for each head in a grid of `columns` columns, row by row, with the length of the straight
    line from query to key (ALiBi in two dimensions, Fuller et al. 2023, https://arxiv.org/abs/2311.00566).

    The position of query i is `start + i`.
    """

    columns: int = field(kw_only=True)

    def distance(self, queries: Int[Tensor, "..."], keys: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        own, kind = queries + self.start, precise(self.slopes).dtype
        down, along = keys // self.columns - own // self.columns, keys % self.columns - own % self.columns
        return torch.hypot(down.to(kind), along.to(kind))


class RelativeGridPosition(_OfGrids, PositionalBias):
    """A learned number for each head and each offset in rows and columns (Swin, Liu et al. 2021, equation 4).

    Offsets are those from key to query, clamped to `radius` in both directions. Each row of the table is an offset:
    (-radius, -radius), (-radius, -radius + 1), ..., (radius, radius).
    """

    more_rows: ClassVar[int] = 0
    """Rows of the table behind those of offsets."""

    def __init__(self, heads: int, radius: int) -> None:
        super().__init__()
        self.radius = radius
        self.table = nn.Parameter(torch.zeros((2 * radius + 1) ** 2 + self.more_rows, heads))

    def at(self, heads: Tensor | slice, queries: Tensor, keys: Tensor) -> Tensor:
        down = queries // self.queries[1] - keys // self.keys[1]
        along = queries % self.queries[1] - keys % self.keys[1]
        down, along = (offset.clamp(-self.radius, self.radius) + self.radius for offset in (down, along))
        return self.table.T[heads, down * (2 * self.radius + 1) + along]

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.table,)

    def shape(self) -> torch.Size:
        return torch.Size((self.table.shape[1], 1, 1))


class RelativePatchPosition(RelativeGridPosition):
    """The same for places behind class tokens: three more rows are those from a token to a place, from a place to a
    token and between tokens (BEiT, Bao et al. 2022, https://arxiv.org/abs/2106.08254).

    The table is learned for grids of `radius + 1` rows and columns; `with_grids` interpolates it for others.
    """

    more_rows: ClassVar[int] = 3
    resized: Tensor | None = None
    """The table for grids of another size."""

    def __init__(self, heads: int, radius: int, tokens: int = 1) -> None:
        super().__init__(heads, radius)
        self.tokens = tokens

    def at(self, heads: Tensor | slice, queries: Tensor, keys: Tensor) -> Tensor:
        (height, width), mine, others = self.queries, queries - self.tokens, keys - self.tokens
        down = mine.clamp(min=0) // width - others.clamp(min=0) // width + height - 1
        along = mine.clamp(min=0) % width - others.clamp(min=0) % width + width - 1
        places = down * (2 * width - 1) + along
        count = (2 * height - 1) * (2 * width - 1)
        first, second = mine < 0, others < 0
        places = torch.where(first, count, places)
        places = torch.where(second, torch.where(first, count + 2, count + 1), places)
        return self.tensors()[0].T[heads, places]

    def with_grids(self, queries: Size, keys: Size | None = None) -> "RelativePatchPosition":
        other, side = super().with_grids(queries, keys), self.radius + 1
        if queries != (side, side):
            offsets = self.table[:-3].T.unflatten(1, (2 * side - 1, 2 * side - 1))[None]
            size = [2 * count - 1 for count in queries]
            resized = F.interpolate(offsets, size, mode="bilinear", align_corners=False)[0]
            other.resized = torch.cat([resized.flatten(1).T, self.table[-3:]])
        return other

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.table if self.resized is None else self.resized,)


class ContinuousGridPosition(_OfGrids):
    """What two layers make of an offset in rows and columns for each head, on a logarithmic scale: `16 sigmoid(f)`
    (Swin V2, Liu et al. 2022, https://arxiv.org/abs/2111.09883, section 3.3).

    Offsets are shares of the largest one in the grid, or in a square of `side` rows and columns that the layers were
    trained with.
    """

    def __init__(self, heads: int, side: int | None = None, hidden: int = 512) -> None:
        super().__init__()
        self.side = side
        self.inner = nn.Linear(2, hidden)
        self.outer = nn.Linear(hidden, heads, bias=False)

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "H T S"]:
        spans = []
        for count in self.queries:
            offsets = torch.arange(1 - count, count, device=queries.device)
            shares = offsets.to(self.inner.weight) / max((self.side or count) - 1, 1)
            spans.append(shares.sign() * (8 * shares.abs() + 1).log2() / 3)
        scale = torch.stack(torch.meshgrid(*spans, indexing="ij"), -1).flatten(0, 1)
        table = 16 * self.outer(F.relu(self.inner(scale))).sigmoid()
        places = zip(_places(rows, self.queries, queries), _places(columns, self.keys, queries), strict=True)
        (down, along), (height, width) = (i[:, None] - j for i, j in places), self.queries
        return table[(down + height - 1) * (2 * width - 1) + along + width - 1].movedim(-1, 0)

    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(self.parameters())

    def shape(self) -> torch.Size:
        return torch.Size((self.outer.out_features, 1, 1))


class RelativeGridKeys(_OfGrids):
    """`q_i · (r_rows + s_columns)` with a learned vector for each offset in rows and for each in columns, from key to
    query (MViTv2, Li et al. 2022, equation 4, https://arxiv.org/abs/2112.01526).

    Offsets are counted in places of the finer of the two grids. Tables are learned for grids of up to `side` rows and
    columns; for others they are interpolated to as many offsets as these have.
    """

    def __init__(self, width: int, side: int) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.empty(2 * side - 1, width))
        self.columns = nn.Parameter(torch.empty(2 * side - 1, width))
        for table in (self.rows, self.columns):
            nn.init.normal_(table, std=0.02)

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        found = []
        places = _places(rows, self.queries, queries)
        for table, mine, count, others in zip((self.rows, self.columns), places, self.queries, self.keys, strict=True):
            products = queries @ _resized(table, 2 * max(count, others) - 1).T
            offsets = _offsets(mine, count, others)
            found.append(products.gather(-1, offsets.expand(*products.shape[:-1], -1)))
        down, along = found
        whole = (down[..., :, None] + along[..., None, :]).flatten(-2)
        return whole[..., columns.start : columns.stop]

    def tensors(self) -> tuple[Tensor, ...]:
        return self.rows, self.columns

    @property
    def reads_queries(self) -> bool:
        return True


def _places(span: range, grid: Size, like: Tensor) -> tuple[Int[Tensor, "T"], Int[Tensor, "T"]]:
    """Row and column of each position of a span."""
    positions = positions_in(span, like.device)
    return positions // grid[1], positions % grid[1]


def _offsets(places: Int[Tensor, "T"], count: int, others: int) -> Int[Tensor, "T K"]:
    """The offset from each of `others` keys along one side to these of `count` queries, from 0 for the least."""
    per_query, per_key = max(others / count, 1.0), max(count / others, 1.0)
    keys = torch.arange(others, device=places.device)
    return (places[:, None] * per_query + (others - 1 - keys) * per_key).long()


def _resized(table: Float[Tensor, "N D"], count: int) -> Float[Tensor, "M D"]:
    if len(table) == count:
        return table
    return F.interpolate(table.T[None], count, mode="linear")[0].T
