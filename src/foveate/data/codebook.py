"""A codebook: a few hundred vectors, learned by k-means, one of which stands for each vector of the data.

N  vectors    K  codes    D  numbers of a vector
"""

from collections.abc import Sequence

import numpy as np

from foveate.errors import UserError

SAMPLE = 50_000
"""Different vectors that the codes are learned from, at most."""

ROUNDS = 15
"""Rounds of k-means."""

CHUNK = 65_536
"""Vectors that are compared with all codes at once."""


def check_codes(codes: Sequence[Sequence[float]], numbers: int) -> None:
    """Raise UserError for a codebook whose codes do not have `numbers` numbers each."""
    if {len(code) for code in codes} != {numbers}:
        raise UserError(f"each code needs {numbers} numbers")


def learn_codebook(vectors: np.ndarray, codes: int, seed: int = 1) -> np.ndarray:
    """The codes (K, D) of vectors (N, D) by k-means: fewer than `codes` where fewer vectors differ.

    Each different vector counts with the root of its frequency, so that a plain ground does not take all codes. A code
    that stands for no vector moves to the one that is farthest from its own code.
    """
    different, counts = np.unique(vectors, axis=0, return_counts=True)
    generator = np.random.default_rng(seed)
    if len(different) > SAMPLE:
        chosen = generator.permutation(len(different))[:SAMPLE]
        chosen[0] = counts.argmax()
        different, counts = different[chosen], counts[chosen]
    points, weights = different.astype(np.float32), np.sqrt(counts)
    if len(points) <= codes:
        return points
    centres = points[_first(points, weights, codes, generator)]
    for _ in range(ROUNDS):
        nearest, distances = _nearest(points, centres)
        mass = np.bincount(nearest, weights, codes)
        sums = np.stack([np.bincount(nearest, weights * column, codes) for column in points.T], 1)
        idle = np.flatnonzero(mass == 0)
        centres = (sums / np.maximum(mass, 1e-9)[:, None]).astype(np.float32)
        centres[idle] = points[np.argsort(distances * weights)[::-1][: len(idle)]]
    return centres


def quantize(vectors: np.ndarray, codebook: np.ndarray) -> np.ndarray:
    """The number of the nearest code of each vector, (N,)."""
    return _nearest(vectors, codebook)[0]


def _first(points: np.ndarray, weights: np.ndarray, codes: int, generator: np.random.Generator) -> np.ndarray:
    """Points to begin from: the most frequent one, then those drawn by the square of their distance to the points so
    far (k-means++, Arthur and Vassilvitskii 2007)."""
    chosen = [int(weights.argmax())]
    squares = (points**2).sum(1)
    distances = np.full(len(points), np.inf)
    while len(chosen) < codes:
        last = points[chosen[-1]]
        distances = np.minimum(distances, (squares - 2 * points @ last + last @ last).clip(0))
        shares = np.cumsum(distances * weights)
        chosen.append(min(int(np.searchsorted(shares, generator.random() * shares[-1], "right")), len(points) - 1))
    return np.array(chosen)


def _nearest(vectors: np.ndarray, codebook: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The number of the nearest code of each vector, and the square of its distance."""
    nearest, distances = [], []
    squares = (codebook**2).sum(1)
    for begin in range(0, len(vectors), CHUNK):
        part = vectors[begin : begin + CHUNK].astype(np.float32)
        found = squares - 2 * part @ codebook.T
        nearest.append(found.argmin(1))
        distances.append(found.min(1) + (part**2).sum(1))
    return np.concatenate(nearest), np.concatenate(distances)
