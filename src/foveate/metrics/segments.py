"""How well the pixels of images are labelled."""

import numpy as np

from foveate.contracts import IGNORE


def count_pixels(found: np.ndarray, right: np.ndarray, labels: int) -> np.ndarray:
    """How many pixels of an image have each label that was found, and each that is right: (labels, labels + 1).

    Both are numbers (h, w); IGNORE is right where a pixel does not count, and a number beyond the `labels` is one that
    is never found.
    """
    known = right != IGNORE
    numbers = np.minimum(right[known], labels) + (labels + 1) * found[known]
    return np.bincount(numbers, minlength=labels * (labels + 1)).reshape(labels, labels + 1)


def segment_metrics(counts: np.ndarray) -> dict[str, float]:
    """The mean intersection over union of the labels that occur, and the share of pixels that are right: from 0 to 100.

    `counts` are sums of what `count_pixels` counts.
    """
    labels = len(counts)
    hits = np.diagonal(counts)
    occurring = counts.sum(0)[:labels]
    union = counts.sum(1) + occurring - hits
    return {
        "mean_IoU": 100 * float((hits / union.clip(1))[occurring > 0].mean()) if occurring.any() else 0.0,
        "pixel_accuracy": 100 * float(hits.sum() / max(1, counts.sum())),
    }
