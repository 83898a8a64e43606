"""How near points are to where they should be."""

from collections.abc import Sequence

import numpy as np

NEAR = 0.05
"""A point counts as right within this share of the longer side of its image (PCK)."""


def point_metrics(
    found: Sequence[np.ndarray], right: Sequence[np.ndarray], sizes: Sequence[tuple[int, int]]
) -> dict[str, float]:
    """The share of points that are right, and the mean distance in percent of the longer side: from 0 to 100.

    Points are (K, 2) in pixels for each image, `sizes` their widths and heights. Those that are NaN in `right` do not
    count.
    """
    apart = [
        np.linalg.norm(one - other, axis=-1) / max(size) for one, other, size in zip(found, right, sizes, strict=True)
    ]
    distances = np.concatenate(apart)
    distances = distances[~np.isnan(distances)]
    return {"PCK": 100 * float((distances <= NEAR).mean()), "distance": 100 * float(distances.mean())}
