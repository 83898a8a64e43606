"""Biases of Transformer-XL and XLNet: products of the queries with vectors of distances and of segments.

L  distances, 2 S - 1
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.attention.biases import Bias
from foveate.attention.shapes import positions_in


@dataclass(frozen=True, eq=False)
class RelativeEncoding(Bias):
    """`factor * (q_i + offset)·r(j - i)`: a vector r for each distance of key j from query i.

    (Dai et al. 2019, Transformer-XL, section 3.3, https://arxiv.org/abs/1901.02860.) The `vectors` are those of the
    distances -(S - 1) to S - 1, for S keys. `offset` is what the position score adds to the (prepared) queries.
    """

    vectors: Float[Tensor, "H L D"]
    offset: Float[Tensor, "H 1 D"]
    factor: float
    places: Int[Tensor, "B T"] | None = None
    """Positions of the queries; by default 0, 1, 2, ..."""

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        queries, last = (queries + self.offset) * self.factor, self.vectors.shape[-2] // 2
        if self.places is not None:
            keys = positions_in(columns, queries.device)
            distances = keys - self.places[:, None, rows.start : rows.stop, None] + last
            return (queries @ self.vectors.mT).gather(-1, distances.expand(-1, queries.shape[1], -1, -1))
        first, count = columns.start - rows.stop + 1, len(rows) + len(columns) - 1
        products = queries @ self.vectors[:, last + first : last + first + count].mT
        return _shift_rows(products, len(columns))

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.vectors, self.offset) if self.places is None else (self.vectors, self.offset, self.places)

    @property
    def reads_queries(self) -> bool:
        return True

    def shape(self) -> torch.Size:
        return torch.Size((len(self.vectors), 1, 1))


@dataclass(frozen=True, eq=False)
class SegmentEncoding(Bias):
    """`factor * (q_i + offset)·s`: one vector s for keys in the segment of the query, another one for all others.

    (Yang et al. 2019, XLNet, section 2.5, https://arxiv.org/abs/1906.08237.)
    """

    vectors: Float[Tensor, "H 2 D"]
    """For the same segment, and for another one."""
    offset: Float[Tensor, "H 1 D"]
    factor: float
    query_segments: Int[Tensor, "B T"]
    key_segments: Int[Tensor, "B S"]

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        same, other = ((queries + self.offset) * self.factor @ self.vectors.mT).split(1, -1)
        own = self.query_segments[:, None, rows.start : rows.stop, None]
        return torch.where(own == self.key_segments[:, None, None, columns.start : columns.stop], same, other)

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.vectors, self.offset, self.query_segments, self.key_segments)

    @property
    def reads_queries(self) -> bool:
        return True

    def shape(self) -> torch.Size:
        batch, queries = self.query_segments.shape
        return torch.Size((batch, len(self.vectors), queries, self.key_segments.shape[1]))


def _shift_rows(products: Float[Tensor, "... T W"], columns: int) -> Float[Tensor, "... T S"]:
    """Row i without its first T - 1 - i columns: `out[i, j] = products[i, j - i + T - 1]`, a view."""
    rows, width = products.shape[-2:]
    if rows == 1:
        return products
    # In the flat memory, row i of the result begins at i * width + T - 1 - i: the rows are one column shorter.
    flat = products.flatten(-2)[..., rows - 1 : rows - 1 + rows * (width - 1)]
    return flat.unflatten(-1, (rows, width - 1))[..., :columns]
