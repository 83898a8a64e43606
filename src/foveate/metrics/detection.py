"""COCO's measure of detections: average precision (Lin et al. 2014, https://arxiv.org/abs/1405.0312).

For each class, detections in the order of their scores are given the objects that they overlap most, if the overlap
(IoU) is at least a threshold, and each object once. The precision, made to never rise with recall, is averaged over 101
recalls. AP50 is for a threshold of 0.5, AP the mean over thresholds from 0.5 to 0.95.

A detection that gets no object but overlaps an ignored one does not count, however many there are: COCO's crowds, by
the share of the detection that is inside, and objects that Pascal VOC calls difficult, by their IoU.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

THRESHOLDS = np.linspace(0.5, 0.95, 10)

RECALLS = np.linspace(0, 1, 101)

MOST = 100
"""Detections of a class in an image that count: the most probable ones."""


@dataclass
class ScoredBoxes:
    """Boxes (K, 4), by their corners, and the number of each one's class; for detections also scores."""

    boxes: np.ndarray
    labels: np.ndarray
    scores: np.ndarray | None = None
    ignored: np.ndarray | None = None
    """Whether each is not an object to find, but one beside which detections do not count (K,)."""
    crowds: np.ndarray | None = None
    """Whether each is a region around many objects (K,)."""

    def of(self, label: int | None) -> "ScoredBoxes":
        """Those of a class, or all of them as one class; detections in the order of their scores."""
        chosen = np.arange(len(self.labels)) if label is None else np.flatnonzero(self.labels == label)
        if self.scores is None:
            flags = (np.zeros(len(chosen), bool) if one is None else one[chosen] for one in (self.ignored, self.crowds))
            return ScoredBoxes(self.boxes[chosen], self.labels[chosen], None, *flags)
        chosen = chosen[np.argsort(-self.scores[chosen], kind="stable")][:MOST]
        return ScoredBoxes(self.boxes[chosen], self.labels[chosen], self.scores[chosen])


@dataclass
class Matches:
    """What the detections of one class got in one image."""

    scores: np.ndarray
    matches: np.ndarray
    """Of `match`."""
    objects: int


Matched = Mapping[int | None, Matches]
"""Of one image by class, and of all classes as one by None."""


def match_image(found: ScoredBoxes, right: ScoredBoxes) -> Matched:
    """What the detections of an image get. It is the same whatever other images there are."""
    result: dict[int | None, Matches] = {}
    for label in (None, *{*found.labels.tolist(), *right.labels.tolist()}):
        detections, things = found.of(label), right.of(label)
        objects = int((~np.asarray(things.ignored)).sum())
        result[label] = Matches(np.asarray(detections.scores), match(detections.boxes, things), objects)
    return result


def detection_metrics(images: Sequence[Matched]) -> dict[str, float]:
    """AP50 and AP, the means over the classes that there are objects of, and AP50 as if there was one class, from the
    matches of each image. From 0 to 100; NaN where there is no object to find."""
    labels = {label for image in images for label, one in image.items() if label is not None and one.objects}
    if not labels:
        return dict.fromkeys(("AP50", "AP", "AP50_any_class"), float("nan"))
    by_class = np.array([average_precision(images, label) for label in sorted(labels)])
    whole = average_precision(images, None)
    return {
        "AP50": 100 * float(by_class[:, 0].mean()),
        "AP": 100 * float(by_class.mean()),
        "AP50_any_class": 100 * float(whole[0]),
    }


def average_precision(images: Sequence[Matched], label: int | None) -> np.ndarray:
    """The average precision of one class, or of all as one, for each threshold. There must be an object of it."""
    found = [image[label] for image in images if label in image]
    order = np.argsort(-np.concatenate([one.scores for one in found]), kind="stable")
    hits, counted = np.concatenate([one.matches for one in found], 2)[..., order]
    right_ones = hits.cumsum(1)
    recalls = right_ones / sum(one.objects for one in found)
    precisions = right_ones / counted.cumsum(1).clip(1)
    precisions = np.maximum.accumulate(precisions[:, ::-1], 1)[:, ::-1]
    return np.array([_at_recalls(*each) for each in zip(recalls, precisions, strict=True)])


def match(boxes: np.ndarray, things: ScoredBoxes) -> np.ndarray:
    """Whether each detection, in the order given, gets an object, and whether it counts, for each threshold (2, T, M).

    Objects to find come before ignored ones.
    """
    ignored = np.asarray(things.ignored)
    hits, counted = np.zeros((len(THRESHOLDS), len(boxes)), bool), np.ones((len(THRESHOLDS), len(boxes)), bool)
    if not len(boxes) or not len(ignored):
        return np.stack([hits, counted])
    overlaps = np.where(np.asarray(things.crowds), share_inside(boxes, things.boxes), iou(boxes, things.boxes))
    for row, threshold in enumerate(THRESHOLDS):
        free = ~ignored
        for place in np.flatnonzero(overlaps.max(1) >= threshold):
            near = np.where(free, overlaps[place], -1)
            best = len(near) - 1 - int(near[::-1].argmax())  # of equal ones COCO takes the last
            if near[best] >= threshold:
                free[best], hits[row, place] = False, True
            else:
                counted[row, place] = not (overlaps[place, ignored] >= threshold).any()
    return np.stack([hits, counted])


def iou(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The intersection over the union of each of (M, 4) with each of (K, 4) boxes, by their corners."""
    shared = _intersections(one, other)
    return shared / np.maximum(_areas(one)[:, None] + _areas(other) - shared, 1e-12)


def share_inside(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The share of each of (M, 4) boxes that is inside each of (K, 4)."""
    return _intersections(one, other) / np.maximum(_areas(one)[:, None], 1e-12)


def _intersections(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    first, last = np.maximum(one[:, None, :2], other[:, :2]), np.minimum(one[:, None, 2:], other[:, 2:])
    found: np.ndarray = (last - first).clip(0).prod(-1)
    return found


def _areas(boxes: np.ndarray) -> np.ndarray:
    found: np.ndarray = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    return found


def _at_recalls(recalls: np.ndarray, precisions: np.ndarray) -> float:
    """The mean precision at 101 recalls; 0 at recalls that are not reached."""
    places = np.searchsorted(recalls, RECALLS)
    return float(np.append(precisions, 0.0)[places].mean())
