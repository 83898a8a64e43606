"""How good decisions are: accuracy, macro F1 and the area under the ROC curve, each from 0 to 100."""

from collections import Counter
from collections.abc import Sequence

import numpy as np


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
