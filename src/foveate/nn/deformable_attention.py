"""Deformable attention to feature maps of several sizes (Zhu et al. 2021, https://arxiv.org/abs/2010.04159).

A query predicts a few points of each map and their weights, and reads nothing else: the cost does not grow with the
size of the maps.

B batch    T queries    S places    L maps    H heads    P points of each map    C width
"""

import math
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from foveate.attention import PointScore, Soft, attend, grid_places, point_queries
from foveate.errors import UserError
from foveate.nn.attention import MultiHeadAttention, split_heads
from foveate.nn.blocks import Residuals
from foveate.nn.feature_maps import FeatureMaps
from foveate.nn.feedforward import FeedForward


class DeformableAttention(nn.Module):
    """H heads, each of which looks at P points of L maps around what a query is given."""

    attends = True

    def __init__(self, width: int, heads: int, levels: int, points: int) -> None:
        super().__init__()
        if width % heads:
            raise UserError(f"width {width} is not a multiple of {heads} heads")
        self.heads, self.levels, self.points = heads, levels, points
        self.offsets = nn.Linear(width, heads * levels * points * 2)
        self.logits = nn.Linear(width, heads * levels * points)
        self.value, self.output = nn.Linear(width, width), nn.Linear(width, width)
        self._initialize()

    def _initialize(self) -> None:
        """At first each head looks into another direction, point by point further away, with equal weights."""
        angles = torch.arange(self.heads) * (2 * math.pi / self.heads)
        directions = torch.stack([angles.cos(), angles.sin()], -1)
        directions = directions / directions.abs().amax(-1, keepdim=True)
        steps = torch.arange(1, self.points + 1)[:, None]
        with torch.no_grad():
            self.offsets.bias.copy_((directions[:, None, None] * steps).expand(-1, self.levels, -1, -1).flatten())
        for zeros in (self.offsets.weight, self.logits.weight, self.logits.bias, self.value.bias, self.output.bias):
            nn.init.zeros_(zeros)
        for layer in (self.value, self.output):
            nn.init.xavier_uniform_(layer.weight)

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        maps: FeatureMaps,
        source: Float[Tensor, "B S C"],
        around: Float[Tensor, "B T D"],
        positions: Float[Tensor, "... T C"],
    ) -> Float[Tensor, "B T C"]:
        """Reads `source`, the vectors of the places of `maps`. `around` are points (D = 2) or boxes (D = 4) of the
        queries, as shares of the image: offsets count in places of a map, or in parts of half the box."""
        queries = x + positions
        offsets = self.offsets(queries).unflatten(-1, (self.heads, self.levels, self.points, 2))
        near = maps.around(around)[:, :, None, :, None]
        if around.shape[-1] == 2:
            scale = 1 / x.new_tensor([(columns, rows) for rows, columns in maps.grids])[:, None]
        else:
            scale = near[..., 2:] / (2 * self.points)
        points = (near[..., :2] + offsets * scale).flatten(3, 4).transpose(1, 2)
        logits = self.logits(queries).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        values = self.value(source).masked_fill(~maps.inside[..., None], 0)
        found = attend(
            point_queries(points, logits, maps.grids),
            grid_places(maps.grids, x.device)[None, None],
            split_heads(values, values.shape[-1] // self.heads),
            score=PointScore(maps.grids),
            select=Soft(x.new_zeros(())),
        )
        return self.output(found.transpose(1, 2).flatten(2))


class DeformableBlock(nn.Module):
    """Deformable attention between the places of feature maps, then a feed-forward layer."""

    def __init__(self, attention: DeformableAttention, feedforward: FeedForward, residual: Residuals) -> None:
        super().__init__()
        self.self, self.feedforward = attention, feedforward
        self.around_self, self.around_feedforward = residual(), residual()

    def forward(
        self, x: Float[Tensor, "B S C"], maps: FeatureMaps, positions: Float[Tensor, "B S C"]
    ) -> Float[Tensor, "B S C"]:
        x = self.around_self(x, lambda y: self.self(y, maps, source=y, around=maps.centres, positions=positions))
        return self.around_feedforward(x, self.feedforward)


class DeformableDecoderBlock(nn.Module):
    """Self-attention of the queries, deformable attention to feature maps, then a feed-forward layer."""

    def __init__(
        self,
        attention: MultiHeadAttention,
        cross: DeformableAttention,
        feedforward: FeedForward,
        residual: Residuals,
    ) -> None:
        super().__init__()
        self.self, self.cross, self.feedforward = attention, cross, feedforward
        self.around_self, self.around_cross, self.around_feedforward = (residual() for _ in range(3))

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        maps: FeatureMaps,
        source: Float[Tensor, "B S C"],
        around: Float[Tensor, "B T D"],
        positions: Float[Tensor, "... T C"],
        mask: Bool[Tensor, "B 1 T T"] | None = None,
    ) -> Float[Tensor, "B T C"]:
        """`mask` says which queries see each other."""
        x = self.around_self(x, partial(self.self, positions=positions, mask=mask))
        cross = partial(self.cross, maps=maps, source=source, around=around, positions=positions)
        return self.around_feedforward(self.around_cross(x, cross), self.feedforward)
