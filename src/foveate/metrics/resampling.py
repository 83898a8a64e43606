"""How sure a figure is, and the difference of two: by drawing examples anew (Efron and Tibshirani 1993; Koehn 2004).

The same examples are drawn for all who answered them, so that a difference is not hidden by how hard they are.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

MOST_DRAWS, FEWEST_DRAWS, SECONDS = 1000, 200, 30.0
"""Draws of the examples; fewer where they would take longer than this, but never fewer than the second number."""

OUTSIDE = 0.05
"""The share of draws outside an interval."""

Measure = Callable[[Sequence[int]], dict[str, float]]
"""The metrics of some examples, by their numbers, which may occur several times."""


@dataclass(frozen=True)
class Measured:
    """Answers to examples, of which any can be measured."""

    count: int
    """How many examples there are."""
    metrics: Measure

    def all(self) -> dict[str, float]:
        """The metrics of all examples."""
        return self.metrics(range(self.count))


class Interval(NamedTuple):
    """A figure, and from where to where it lies in all but 5 % of the draws."""

    value: float
    low: float
    high: float


class ResampledFigures(NamedTuple):
    """The figures of several who answered the same examples."""

    figures: list[Interval]
    differences: list[Interval]
    """From the first one: nothing for itself."""
    chances: list[float]
    """How probable so large a difference is if there is none (two-sided); 1 for the first."""
    draws: int


def compare_by_resampling(answered: Sequence[Measured], metric: str, seed: int = 1) -> ResampledFigures:
    """The metric of each, and its difference from that of the first, with intervals by paired bootstrap."""
    whole = np.array([one.all()[metric] for one in answered])
    drawn = _draw(answered, metric, seed)
    figures = [_interval(value, row) for value, row in zip(whole, drawn.T, strict=True)]
    apart = drawn - drawn[:, :1]
    differences = [_interval(value - whole[0], row) for value, row in zip(whole, apart.T, strict=True)]
    return ResampledFigures(figures, differences, [1.0, *map(_chance, apart.T[1:])], len(drawn))


def _draw(answered: Sequence[Measured], metric: str, seed: int) -> np.ndarray:
    """The metric of each (draws, answered), for the same examples in each draw."""
    generator, count, begin = np.random.default_rng(seed), answered[0].count, time.monotonic()
    found: list[list[float]] = []
    while len(found) < MOST_DRAWS and (len(found) < FEWEST_DRAWS or time.monotonic() - begin < SECONDS):
        rows = generator.integers(count, size=count).tolist()
        found.append([one.metrics(rows).get(metric, np.nan) for one in answered])
    return np.array(found)


def _interval(value: float, drawn: np.ndarray) -> Interval:
    known = drawn[np.isfinite(drawn)]
    if not len(known):
        return Interval(float(value), float("nan"), float("nan"))
    low, high = np.quantile(known, [OUTSIDE / 2, 1 - OUTSIDE / 2])
    return Interval(float(value), float(low), float(high))


def _chance(apart: np.ndarray) -> float:
    """Twice the share of draws on the rarer side of no difference; never 0, since there are only so many draws.

    Draws of which a metric says nothing are no draws.
    """
    known = apart[np.isfinite(apart)]
    rarer = min((known <= 0).sum(), (known >= 0).sum())
    return float(min(1.0, 2 * (rarer + 1) / (len(known) + 1)))


def over_seeds(values: Sequence[float]) -> Interval:
    """The mean of some trainings and its 95 % interval by Student's t, which is wide for few of them."""
    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return Interval(mean, float("nan"), float("nan"))
    half = _T95[min(count - 2, len(_T95) - 1)] * float(np.std(values, ddof=1)) / count**0.5
    return Interval(mean, mean - half, mean + half)


_T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12)
"""Student's t for 95 %, of 1 degree of freedom and more; about 2 from there on."""
