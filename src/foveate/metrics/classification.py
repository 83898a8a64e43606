"""How good decisions are: accuracy, macro F1 and the area under the ROC curve, each from 0 to 100."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int


def accuracy(found: Sequence[str], right: Sequence[str]) -> float:
    """The share of decisions that are right; 0 where there is none to make."""
    return 100 * sum(map(str.__eq__, found, right)) / max(len(right), 1)


def macro_f1(found: Sequence[str], right: Sequence[str]) -> float:
    """The mean over all classes in `right` of F1, the harmonic mean of precision and recall: rare ones count as much
    as frequent ones."""
    hits = Counter(one for one, other in zip(found, right, strict=True) if one == other)
    given, wanted = Counter(found), Counter(right)
    return 100 * sum(2 * hits[name] / (given[name] + wanted[name]) for name in wanted) / max(len(wanted), 1)


def roc_auc(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Computes how often a positive example has a higher score than a negative one, an equal score counting half
    (Hanley and McNeil 1982). Raises ValueError where either kind is missing."""
    values, kinds = np.asarray(scores, np.float64), np.asarray(positive, bool)
    positives, negatives = int(kinds.sum()), int((~kinds).sum())
    if not positives or not negatives:
        raise ValueError(f"{positives} positive and {negatives} negative examples, but some of both are needed")
    ordered, counts = np.unique(values, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2
    ranks = mean_ranks[np.searchsorted(ordered, values)]
    return 100 * float(ranks[kinds].sum() - positives * (positives + 1) / 2) / (positives * negatives)


@dataclass(frozen=True)
class ClassQuality:
    """How well one class is found: shares from 0 to 100, and how many examples are of it."""

    precision: float
    recall: float
    f1: float
    count: int

    @classmethod
    def of(cls, hits: int, given: int, count: int) -> "ClassQuality":
        """That of a class which `given` examples got and `count` have, `hits` of them both."""
        return cls(100 * hits / max(1, given), 100 * hits / count, 200 * hits / (given + count), count)


def by_class(found: Sequence[str], right: Sequence[str]) -> dict[str, ClassQuality]:
    """How well each class of `right` is found, the most frequent one first."""
    hits = Counter(one for one, other in zip(found, right, strict=True) if one == other)
    given, wanted = Counter(found), Counter(right)
    return {name: ClassQuality.of(hits[name], given[name], count) for name, count in wanted.most_common()}


def confusion(found: Sequence[str], right: Sequence[str], names: Sequence[str]) -> Int[np.ndarray, "N N"]:
    """How often an example of each class (rows) got each label (columns); labels of no name are left out."""
    places, counts = {name: place for place, name in enumerate(names)}, np.zeros((len(names), len(names)), np.int64)
    for one, other in zip(found, right, strict=True):
        if one in places and other in places:
            counts[places[other], places[one]] += 1
    return counts


BINS = 15


def calibration_error(confidences: Sequence[float], hits: Sequence[bool]) -> float:
    """The expected calibration error (Guo et al. 2017), from 0 to 100: how far the mean probability of what is answered
    is from the share that is right, in 15 equal ranges of the probability."""
    values, right = np.asarray(confidences, np.float64), np.asarray(hits, np.float64)
    bins = np.minimum((values * BINS).astype(int), BINS - 1)
    gaps = [abs(float((values - right)[bins == one].sum())) for one in range(BINS)]
    return 100 * sum(gaps) / max(1, len(values))
