"""Attention to points of feature maps: where the points are, and what they weigh.

A query of deformable attention reads a few points of each of several feature maps (Zhu et al. 2021,
https://arxiv.org/abs/2010.04159). The keys of its record are the places of all maps, map by map.

B batch    H heads    T queries    N points of a query, equally many of each map
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.attention.points import Grids, PointScore, split_points
from foveate.sight.measures import ALL, Choice, resolve_choice
from foveate.sight.recorded_call import RecordedCall


class SamplingPoints(NamedTuple):
    """Where some queries look."""

    places: Float[Tensor, "B H T N 2"]
    """From the left and from the top, as shares of the image. A point may be outside."""
    weights: Float[Tensor, "B H T N"]
    """They sum to 1, with those of points outside, which read nothing."""
    maps: Int[Tensor, "N"]
    """The number of the feature map of each point."""
    grids: Grids
    """Rows and columns of the feature maps."""


def grids_of(calls: Sequence[RecordedCall]) -> Grids | None:
    """Rows and columns of the feature maps whose points calls look at; None where they look at something else."""
    scores = [recorded.call.score for recorded in calls]
    grids = {score.grids for score in scores if isinstance(score, PointScore)}
    whole = all(isinstance(score, PointScore) for score in scores)
    return grids.pop() if whole and len(grids) == 1 else None


def points_of(
    calls: Sequence[RecordedCall], grids: Grids, heads: Choice = ALL, queries: Choice = ALL
) -> SamplingPoints:
    """The points of some heads and queries of calls."""
    rows = torch.cat([recorded.call.queries.flatten(1, -3) for recorded in calls], -2).float()
    for side, choice in ((1, heads), (2, queries)):
        chosen = torch.tensor(resolve_choice(choice, rows.shape[side]), dtype=torch.int64, device=rows.device)
        rows = rows.index_select(side, chosen)
    columns, down, log_weights = split_points(rows)
    maps = torch.arange(len(grids), device=rows.device).repeat_interleave(columns.shape[-1] // len(grids))
    high, wide = rows.new_tensor(grids)[maps].unbind(-1)
    places = torch.stack([(columns + 0.5) / wide, (down + 0.5) / high], -1)
    return SamplingPoints(places, log_weights.softmax(-1), maps, grids)


def place_names(grids: Grids) -> list[str]:
    """What to call the places of feature maps, map by map and row by row."""
    return [
        f"map {level}, row {row}, column {column}"
        for level, (rows, columns) in enumerate(grids, 1)
        for row in range(1, rows + 1)
        for column in range(1, columns + 1)
    ]
