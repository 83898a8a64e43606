"""The fit of L(N, D) = E + A / N^a + B / D^b to measured losses."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

COARSE = np.arange(0.05, 2.0, 0.1)
"""Exponents that are tried first; then those around the best, in steps of 0.01."""


LEAST, MOST = 0.03, 1.95
"""Exponents beyond these are at the limits of the search: the losses do not determine them."""


@dataclass(frozen=True)
class LossPoint:
    """A trained model."""

    parameters: int
    tokens: int
    loss: float


@dataclass(frozen=True)
class Law:
    """E, A, B, a, b of the loss."""

    E: float
    A: float
    B: float
    a: float
    b: float

    @property
    def undetermined(self) -> list[str]:
        """The exponents that the losses do not determine."""
        return [name for name in ("a", "b") if not LEAST < getattr(self, name) < MOST]

    def __call__(self, parameters: float, tokens: float) -> float:
        return self.E + self.A / parameters**self.a + self.B / tokens**self.b


def fit(points: Sequence[LossPoint]) -> Law:
    """The law with the least sum of squared relative errors, none of its numbers negative.

    For given exponents the others are the solution of a linear problem, so a grid of exponents finds the optimum
    without a starting point.
    """
    parameters, tokens, losses = (
        np.array([getattr(point, name) for point in points], dtype=float) for name in ("parameters", "tokens", "loss")
    )

    def solve(a: float, b: float) -> tuple[float, Law]:
        columns = np.stack([np.ones_like(losses), parameters**-a, tokens**-b], 1)
        scale = columns.max(0)
        numbers, error = _non_negative(columns / scale / losses[:, None], np.ones_like(losses))
        floor, size, text = (float(value) for value in numbers / scale)
        return error, Law(floor, size, text, round(float(a), 4), round(float(b), 4))

    def best(first: np.ndarray, second: np.ndarray) -> Law:
        return min((solve(a, b) for a in first for b in second), key=lambda solution: solution[0])[1]

    near = best(COARSE, COARSE)
    fine = (np.arange(max(0.01, value - 0.1), value + 0.1, 0.01) for value in (near.a, near.b))
    return best(*fine)


def exponent_ranges(points: Sequence[LossPoint]) -> tuple[tuple[float, float], tuple[float, float]]:
    """The least and greatest a and b of the fits that leave out one point each."""
    laws = [fit([*points[:index], *points[index + 1 :]]) for index in range(len(points))]
    a, b = [law.a for law in laws], [law.b for law in laws]
    return (min(a), max(a)), (min(b), max(b))


def _non_negative(columns: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, float]:
    """Least squares with numbers of at least 0: the best of the solutions with some of them 0."""
    count = columns.shape[1]
    best, least = np.zeros(count), float(wanted @ wanted)
    for chosen in range(1, 2**count):
        chosen_indices = [index for index in range(count) if chosen >> index & 1]
        part = columns[:, chosen_indices]
        solution = np.linalg.lstsq(part, wanted, rcond=None)[0]
        error = float(((part @ solution - wanted) ** 2).sum())
        if (solution >= 0).all() and error < least:
            best, least = np.zeros(count), error
            best[chosen_indices] = solution
    return best, least
