"""How well the pixels of images are labelled."""

from collections.abc import Iterable

import numpy as np

from foveate.contracts import IGNORE


def segment_metrics(pairs: Iterable[tuple[np.ndarray, np.ndarray]], labels: int) -> dict[str, float]:
    """The mean intersection over union of the labels that occur, and the share of pixels that are right: from 0 to 100.

    `pairs` are, for each image, the numbers that were found and the right ones (h, w), IGNORE for pixels that do not
    count. A number beyond the `labels` is one that is never found.
    """
    counts = np.zeros((labels, labels + 1), np.int64)
    for found, right in pairs:
        known = right != IGNORE
        numbers = np.minimum(right[known], labels) + (labels + 1) * found[known]
        counts += np.bincount(numbers, minlength=counts.size).reshape(counts.shape)
    hits = np.diagonal(counts)
    occurring = counts.sum(0)[:labels]
    union = counts.sum(1) + occurring - hits
    return {
        "mean_IoU": 100 * float((hits / union.clip(1))[occurring > 0].mean()) if occurring.any() else 0.0,
        "pixel_accuracy": 100 * float(hits.sum() / max(1, counts.sum())),
    }
