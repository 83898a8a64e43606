"""Attention to a few points of feature maps: a query says where it looks (Zhu et al. 2021, Deformable DETR,
https://arxiv.org/abs/2010.04159).

A value at a point is interpolated between the four places around it, and its weight is a softmax over the points of the
query. So the map of weights over all places is that of a score between a query, which holds points and their weights,
and a place. `kernels/points.py` computes the output without that map.

B batch    H heads    T queries    S places, map by map and row by row    N points, equally many of each map
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.attention.scores import Score
from foveate.attention.shapes import precise

Grids = tuple[tuple[int, int], ...]
"""Rows and columns of each feature map."""

LEAST = 1e-12
"""The smallest weight that points leave outside of the maps, so that its logarithm is finite."""


@dataclass(frozen=True)
class PointScore(Score):
    """The logarithm of a place's weight. A query is the columns, the rows and the log-weights of its points, (3 N); a
    key is the column, the row and the map of a place."""

    grids: Grids

    def fits(self, query_width: int, key_width: int) -> bool:
        return key_width == 3 and query_width % (3 * len(self.grids)) == 0

    def footprint(self, width: int) -> int:
        return width

    def block(self, queries: Float[Tensor, "... T P"], keys: Float[Tensor, "... S 3"]) -> Float[Tensor, "... T S"]:
        columns, rows, log_weights = split_points(queries)
        maps = torch.arange(len(self.grids), device=keys.device).repeat_interleave(columns.shape[-1] // len(self.grids))
        across, down, level = (part[..., None, None, :] for part in keys.unbind(-1))
        distances = ((columns[..., None] - across).abs(), (rows[..., None] - down).abs())
        near = (1 - distances[0]).clamp_min(0) * (1 - distances[1]).clamp_min(0) * (maps[:, None] == level)
        largest = log_weights.detach().amax(-1, keepdim=True)
        shares = ((log_weights - largest).exp()[..., None] * near).sum(-2)
        return shares.log() + largest


def point_queries(
    points: Float[Tensor, "... N 2"], logits: Float[Tensor, "... N"], grids: Grids
) -> Float[Tensor, "... P"]:
    """The queries of a `PointScore`, from x and y of each point as shares of the width and height of its map.

    The first N / len(grids) points are those of the first map, and so on. Log-weights are
    relative to the weight that falls outside of the maps, which a sink takes (see `Soft`).
    """
    points, logits = precise(points), precise(logits)
    log_weights = logits - logits.logsumexp(-1, keepdim=True)
    sizes = points.new_tensor([(columns, rows) for rows, columns in grids])[:, None]
    points = points.unflatten(-2, (len(grids), -1)) * sizes - 0.5
    with torch.no_grad():  # a constant for all points of a query, which changes no weight
        inside = torch.minimum(points + 1, sizes - points).clamp(0, 1).prod(-1).flatten(-2)
        outside = (1 - (log_weights.exp() * inside).sum(-1, keepdim=True)).clamp_min(LEAST)
    columns, rows = points.flatten(-3, -2).unbind(-1)
    return torch.cat([columns, rows, log_weights - outside.log()], -1)


def split_points(queries: Float[Tensor, "... P"]) -> tuple[Tensor, Tensor, Tensor]:
    """The columns, the rows and the log-weights of each query's points, (..., N)."""
    columns, rows, log_weights = queries.unflatten(-1, (3, -1)).unbind(-2)
    return columns, rows, log_weights


def grid_places(grids: Grids, device: torch.device) -> Float[Tensor, "S 3"]:
    """The keys of a `PointScore`: the column, the row and the map of each place."""
    found = []
    for level, (rows, columns) in enumerate(grids):
        down, across = torch.meshgrid(
            torch.arange(rows, device=device), torch.arange(columns, device=device), indexing="ij"
        )
        found.append(torch.stack([across, down, torch.full_like(down, level)], -1).flatten(0, 1))
    return torch.cat(found).float()


def finest(grids: Grids) -> tuple[int, int]:
    """Rows and columns of the largest grid."""
    return max(grids, key=lambda grid: grid[0] * grid[1])


def on_finest_grid(weights: Float[Tensor, "... S"], grids: Grids) -> Float[Tensor, "... S0"]:
    """The weights of all maps as one map over the image, that of the finest grid. The weight of a place of a coarser
    map is divided among the places that it covers."""
    size, found = finest(grids), torch.zeros(())
    parts = weights.split([rows * columns for rows, columns in grids], -1)
    for part, (rows, columns) in zip(parts, grids, strict=True):
        own = part.unflatten(-1, (rows, columns))
        down = torch.arange(size[0], device=own.device) * rows // size[0]
        across = torch.arange(size[1], device=own.device) * columns // size[1]
        shares = torch.bincount(down, minlength=rows)[:, None] * torch.bincount(across, minlength=columns)
        found = found + (own / shares.clamp_min(1))[..., down[:, None], across]
    return found.flatten(-2)
