"""The bias of DeBERTa: products of content with positions (He et al. 2021, https://arxiv.org/abs/2006.03654).

L  distances that are told apart, on each side
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.attention.biases import Bias
from foveate.attention.shapes import positions_in


@dataclass(frozen=True)
class Distances:
    """Which of 2 L vectors is that of a distance `i - j` of key j behind query i."""

    most: int
    """L: farther ones have the vector of the farthest."""
    longest: int | None = None
    """With it, distances beyond L / 2 share vectors in ever larger buckets, and the last ends here (DeBERTa-v2)."""

    def __call__(self, distance: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        if self.longest is not None:
            single = self.most // 2
            share = torch.log(distance.abs().clamp(min=single) / single) / math.log((self.longest - 1) / single)
            bucket = (torch.ceil(share * (single - 1)) + single).long() * distance.sign()
            distance = torch.where(distance.abs() <= single, distance, bucket)
        return (distance + self.most).clamp(0, 2 * self.most - 1)


@dataclass(frozen=True, eq=False)
class Disentangled(Bias):
    """`factor * (q_i·p(i - j) + k_j·r(i - j))`: content to position, and position to content.

    `queries` of a block are the prepared ones; either product may be left out.
    """

    distances: Distances
    factor: float
    positions: Float[Tensor, "H L D"] | None = None
    """p of each distance, which queries look for."""
    keys: Float[Tensor, "B H S D"] | None = None
    asked: Float[Tensor, "H L D"] | None = None
    """r of each distance, which looks for keys; with it, the `keys` are needed."""
    start: int = 0
    """The position of the first query."""

    def block(self, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        device = queries.device
        distance = positions_in(rows, device)[:, None] + self.start - positions_in(columns, device)
        at = self.distances(distance)
        found = torch.zeros(at.shape, dtype=queries.dtype, device=device)
        if self.positions is not None:
            found = found + _pick(queries @ self.positions.mT, at)
        if self.asked is not None and self.keys is not None:
            keys = self.keys[..., columns.start : columns.stop, :]
            found = found + _pick(keys @ self.asked.mT, at.mT).mT
        return found * self.factor

    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(part for part in (self.positions, self.keys, self.asked) if part is not None)

    @property
    def reads_queries(self) -> bool:
        return self.positions is not None

    def shape(self) -> torch.Size:
        if self.keys is None or self.asked is None:
            return torch.Size((len(self.positions) if self.positions is not None else 1, 1, 1))
        return torch.Size((*self.keys.shape[:-2], 1, self.keys.shape[-2]))


def _pick(products: Float[Tensor, "... T L"], at: Int[Tensor, "T S"]) -> Float[Tensor, "... T S"]:
    return products.gather(-1, at.expand(*products.shape[:-1], at.shape[-1]))
