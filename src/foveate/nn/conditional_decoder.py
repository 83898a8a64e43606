"""The decoder of Conditional DETR: where a query looks and what it looks for are compared apart (Meng et al. 2021).

https://arxiv.org/abs/2108.06152. Content and position have projections of their own. For attention to the feature map
they stand behind each other, so that the score is the sum of both products.

B batch    Q queries    S places of the feature map    C width
"""

from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from foveate.attention import Mask, attend
from foveate.nn.attention import split_heads
from foveate.nn.blocks import Residuals
from foveate.nn.feedforward import FeedForward
from foveate.nn.image_positions import coordinate_waves
from foveate.nn.object_queries import LearnedQueries


class ConditionalQueries(LearnedQueries):
    """Queries with a learned position each, from which a reference point is predicted; boxes are offsets from it."""

    def __init__(self, queries: int, width: int) -> None:
        super().__init__(queries, width)
        self.point = _two_layers(width, 2)
        self.scale = _two_layers(width, width)

    def forward(
        self, rows: int, boxes: Tensor | None, labels: Tensor | None, first: Tensor | None
    ) -> tuple[Tensor, Tensor, None]:
        """Vectors (B, Q, C), and boxes (B, Q, 4) before the sigmoid: points without sizes."""
        points = F.pad(self.point(self.table), (0, 2)).expand(rows, -1, -1)
        return torch.zeros_like(self.table).expand(rows, -1, -1), points, None

    def waves(self, points: Float[Tensor, "B Q 4"], x: Float[Tensor, "B Q C"], first: bool) -> Float[Tensor, "B Q C"]:
        """Waves of the row and the column of each reference point; behind the first layer, scaled by what x says."""
        columns, rows = points[..., :2].sigmoid().unbind(-1)
        waves = torch.cat([coordinate_waves(each, x.shape[-1] // 2) for each in (rows, columns)], -1)
        return waves if first else waves * self.scale(x)


def _two_layers(width: int, outer: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outer))


class ConditionalSelfAttention(nn.Module):
    """Self-attention of queries whose positions are projected apart."""

    attends = True

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.head_width, self.dropout = width // heads, dropout
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.position_query, self.position_key = (nn.Linear(width, width) for _ in range(2))

    def forward(
        self, x: Float[Tensor, "B Q C"], positions: Float[Tensor, "... Q C"], mask: Tensor | None = None
    ) -> Float[Tensor, "B Q C"]:
        queries = self.query(x) + self.position_query(positions)
        keys = self.key(x) + self.position_key(positions)
        queries, keys, values = (split_heads(part, self.head_width) for part in (queries, keys, self.value(x)))
        found = attend(queries, keys, values, mask=mask, dropout=self.dropout if self.training else 0.0)
        return self.output(found.transpose(1, 2).flatten(2))


class ConditionalCrossAttention(nn.Module):
    """Attention to a feature map by content and by position. In the first layer, which knows no content yet, positions
    are added to content too."""

    attends = True

    def __init__(self, width: int, heads: int, dropout: float, first: bool) -> None:
        super().__init__()
        self.head_width, self.dropout = width // heads, dropout
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.position_key, self.wave_query = (nn.Linear(width, width) for _ in range(2))
        self.position_query = nn.Linear(width, width) if first else None

    def forward(
        self,
        x: Float[Tensor, "B Q C"],
        source: Float[Tensor, "B S C"],
        positions: Float[Tensor, "... Q C"],
        source_positions: Float[Tensor, "B S C"],
        waves: Float[Tensor, "B Q C"],
        mask: Mask | Tensor | None = None,
    ) -> Float[Tensor, "B Q C"]:
        queries, keys, places = self.query(x), self.key(source), self.position_key(source_positions)
        if self.position_query is not None:
            queries, keys = queries + self.position_query(positions), keys + places
        split = partial(split_heads, head_width=self.head_width)
        queries = torch.cat([split(queries), split(self.wave_query(waves))], -1)
        keys = torch.cat([split(keys), split(places)], -1)
        dropout = self.dropout if self.training else 0.0
        found = attend(queries, keys, split(self.value(source)), mask=mask, dropout=dropout)
        return self.output(found.transpose(1, 2).flatten(2))


class ConditionalBlock(nn.Module):
    """Self-attention of the queries, attention to the feature map, then a feed-forward layer."""

    def __init__(
        self, width: int, heads: int, dropout: float, feedforward: FeedForward, residual: Residuals, first: bool
    ) -> None:
        super().__init__()
        self.self = ConditionalSelfAttention(width, heads, dropout)
        self.cross = ConditionalCrossAttention(width, heads, dropout, first)
        self.feedforward = feedforward
        self.around_self, self.around_cross, self.around_feedforward = (residual() for _ in range(3))

    def forward(
        self,
        x: Float[Tensor, "B Q C"],
        source: Float[Tensor, "B S C"],
        mask: Bool[Tensor, "B 1 Q Q"] | None,
        source_mask: Bool[Tensor, "B 1 1 S"] | None,
        positions: Float[Tensor, "... Q C"],
        source_positions: Float[Tensor, "B S C"],
        waves: Float[Tensor, "B Q C"],
    ) -> Float[Tensor, "B Q C"]:
        x = self.around_self(x, partial(self.self, positions=positions, mask=mask))
        own = {"positions": positions, "source_positions": source_positions, "waves": waves}
        x = self.around_cross(x, partial(self.cross, source=source, mask=source_mask, **own))
        return self.around_feedforward(x, self.feedforward)
