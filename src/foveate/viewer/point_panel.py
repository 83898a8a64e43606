"""The points of a site of deformable attention, as a page draws them on the picture."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float32

from foveate.attention.points import Grids
from foveate.sight.measures import ALL, Choice

PAGE_POINTS = 400_000
"""Points in a page, of all sites."""


@dataclass
class PointPanel:
    """The points of each head and query: equally many of each feature map, map by map."""

    grids: Grids
    """Rows and columns of the feature maps."""
    places: Float32[np.ndarray, "H T N 2"]
    """From the left and from the top, as shares of the image."""
    weights: Float32[np.ndarray, "H T N"]

    @property
    def count(self) -> int:
        """Points of a query."""
        return self.weights.shape[2]


def looks_at_points(site: Any) -> bool:
    """Whether a site has points over the image, of which the weights are what its map shows."""
    return getattr(site, "has_points", False)


def point_panel(site: Any, example: int = 0, heads: Choice = ALL, queries: Choice = ALL) -> PointPanel:
    """The points of some heads and queries of a site."""
    found = site.points(heads, queries)
    places, weights = (part[example].cpu().float().numpy() for part in (found.places, found.weights))
    return PointPanel(found.grids, places, weights)


def kept_points(counts: Mapping[str, int], most: int = PAGE_POINTS) -> set[str]:
    """The sites whose points a page has, by the number of their points: the smallest ones, as many as fit."""
    kept: set[str] = set()
    for name, count in sorted(counts.items(), key=lambda one: one[1]):
        most -= count
        if most >= 0:
            kept.add(name)
    return kept
