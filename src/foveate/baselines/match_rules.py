"""Simple rules of whether two texts belong together, to measure a model against."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from foveate.data.text.match_pairs import Judged


def length_ratio(source: str, target: str) -> float:
    """The length of the shorter text by that of the longer one, in characters."""
    shorter, longer = sorted((len(source), len(target)))
    return shorter / max(longer, 1)


def shared_triples(source: str, target: str) -> float:
    """Computes how many of the texts' runs of three characters are in both, by the mean of what each has (Dice 1945):
    names, numbers and related words are."""
    first, second = _triples(source), _triples(target)
    return 2 * len(first & second) / (len(first) + len(second))


def _triples(text: str) -> set[str]:
    padded = f" {text.casefold()} "
    return {padded[place : place + 3] for place in range(max(len(padded) - 2, 1))}


MEASURES: dict[str, Callable[[str, str], float]] = {
    "length ratio": length_ratio,
    "shared letter triples": shared_triples,
}
"""What a rule decides by, by its name."""


@dataclass(frozen=True)
class ThresholdRule:
    """Says that two texts belong together where a measure of them is at least a threshold."""

    name: str
    threshold: float

    def measure(self, pairs: Sequence[Judged]) -> list[float]:
        return [MEASURES[self.name](pair.source, pair.target) for pair in pairs]


def fit(name: str, pairs: Sequence[Judged]) -> ThresholdRule:
    """The rule with the threshold that decides most of the pairs rightly, the lowest of the best."""
    return ThresholdRule(name, best_threshold([MEASURES[name](pair.source, pair.target) for pair in pairs], pairs))


def best_threshold(values: Sequence[float], pairs: Sequence[Judged]) -> float:
    """The threshold for what was measured of the pairs that decides most of them rightly, the lowest of the best."""
    right = np.array([pair.right for pair in pairs])
    thresholds, places = np.unique(np.array(values), return_inverse=True)
    gains = np.bincount(places, np.where(right, 1, -1), len(thresholds))
    # with a threshold at place k, the right pairs from k on and the wrong ones before it are decided rightly
    return float(thresholds[int(np.argmax(np.cumsum(gains[::-1])[::-1]))])
