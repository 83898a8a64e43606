"""Average precision against COCO's own code, and by hand."""

import contextlib
import io

import numpy as np
import pytest
from faster_coco_eval import COCO, COCOeval_faster

from foveate.metrics.detection import ScoredBoxes, detection_metrics, iou, match_image


def boxes(generator: np.random.Generator, count: int, classes: int) -> ScoredBoxes:
    first, size = generator.uniform(0, 80, (count, 2)), generator.uniform(5, 40, (count, 2))
    return ScoredBoxes(np.concatenate([first, first + size], 1), generator.integers(0, classes, count))


def jittered(generator: np.random.Generator, right: ScoredBoxes, classes: int) -> ScoredBoxes:
    """Most objects with moved boxes, some of another class, and a few that are not there."""
    others = boxes(generator, 3, classes)
    moved = np.concatenate([right.boxes + generator.normal(0, 2, right.boxes.shape), others.boxes])
    moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2] + 1)  # COCO ignores boxes of a negative size
    labels = np.concatenate([right.labels, others.labels])
    return ScoredBoxes(
        moved, labels, generator.permutation(len(labels)) / 100 + generator.uniform(0, 0.001, len(labels))
    )


def coco_metrics(found: list[ScoredBoxes], right: list[ScoredBoxes], classes: int) -> tuple[float, float]:
    corners_to_sizes = lambda box: [*box[:2], *(box[2:] - box[:2])]  # noqa: E731
    truth, answers = [], []
    for image, (each, things) in enumerate(zip(found, right, strict=True), 1):
        crowds = np.zeros(len(things.labels), bool) if things.crowds is None else things.crowds
        for box, label, crowd in zip(things.boxes, things.labels, crowds, strict=True):
            bbox = list(map(float, corners_to_sizes(box)))
            one = {"id": len(truth) + 1, "image_id": image, "category_id": int(label) + 1, "bbox": bbox}
            truth.append({**one, "area": bbox[2] * bbox[3], "iscrowd": int(crowd)})
        for box, label, score in zip(each.boxes, each.labels, each.scores, strict=True):
            bbox = list(map(float, corners_to_sizes(box)))
            answers.append({"image_id": image, "category_id": int(label) + 1, "bbox": bbox, "score": float(score)})
    images = [{"id": image + 1} for image in range(len(right))]
    categories = [{"id": label + 1, "name": str(label)} for label in range(classes)]
    with contextlib.redirect_stdout(io.StringIO()):
        table = COCO({"images": images, "annotations": truth, "categories": categories})
        evaluation = COCOeval_faster(table, table.loadRes(answers), "bbox")
        evaluation.evaluate(), evaluation.accumulate(), evaluation.summarize()
    return 100 * evaluation.stats[1], 100 * evaluation.stats[0]


def measured(found: list[ScoredBoxes], right: list[ScoredBoxes]) -> dict[str, float]:
    return detection_metrics([*map(match_image, found, right)])


def test_as_coco() -> None:
    generator = np.random.default_rng(3)
    right = [boxes(generator, count, 5) for count in (3, 7, 1, 5, 11, 2, 6)]
    found = [jittered(generator, each, 5) for each in right]
    metrics = measured(found, right)
    assert 20 < metrics["AP"] < metrics["AP50"] < 95
    assert (metrics["AP50"], metrics["AP"]) == pytest.approx(coco_metrics(found, right, 5), abs=1e-6)
    one = [ScoredBoxes(each.boxes, 0 * each.labels) for each in right]
    as_one = [ScoredBoxes(each.boxes, 0 * each.labels, each.scores) for each in found]
    assert metrics["AP50_any_class"] == pytest.approx(coco_metrics(as_one, one, 1)[0], abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_as_coco_with_crowds(seed: int) -> None:
    """Some objects become crowds, which several detections lie in; a class may have nothing else."""
    generator = np.random.default_rng(seed)
    right, found = [], []
    for count in (3, 7, 1, 5, 11, 2, 6, 9):
        things = boxes(generator, count, 4)
        crowds = (generator.random(count) < 0.4) | (things.labels == 3)
        things.boxes[crowds, 2:] += generator.uniform(5, 30, (int(crowds.sum()), 2))
        right.append(ScoredBoxes(things.boxes, things.labels, None, crowds, crowds))
        inside = boxes(generator, 9, 4)  # some of these are inside a crowd
        more = ScoredBoxes(np.concatenate([things.boxes, inside.boxes]), np.concatenate([things.labels, inside.labels]))
        found.append(jittered(generator, more, 4))
    metrics = measured(found, right)
    plain = [ScoredBoxes(each.boxes[~each.crowds], each.labels[~each.crowds]) for each in right]
    assert metrics["AP"] > measured(found, plain)["AP"] + 0.1
    assert (metrics["AP50"], metrics["AP"]) == pytest.approx(coco_metrics(found, right, 4), abs=1e-6)


def test_difficult_objects_by_hand() -> None:
    """Two detections of a difficult object count neither for nor against; one beside it is wrong."""
    things = np.array([[0.0, 0, 10, 10], [20, 20, 30, 30]])
    right = [ScoredBoxes(things, np.array([0, 0]), None, np.array([False, True]), np.zeros(2, bool))]
    twice = np.array([[20.0, 20, 30, 30], [20, 20, 30, 29], [0, 0, 10, 10]])
    once = np.array([[26.0, 26, 36, 36], [20, 20, 30, 29], [0, 0, 10, 10]])
    found = [ScoredBoxes(twice, np.zeros(3, int), np.array([0.9, 0.8, 0.7]))]
    assert measured(found, right)["AP50"] == pytest.approx(100)
    beside = [ScoredBoxes(once, found[0].labels, found[0].scores)]
    assert measured(beside, right)["AP50"] == pytest.approx(50)


def test_nothing_to_find() -> None:
    only = [ScoredBoxes(np.array([[0.0, 0, 10, 10]]), np.array([0]), None, np.ones(1, bool), np.ones(1, bool))]
    found = [ScoredBoxes(np.array([[0.0, 0, 9, 9]]), np.array([0]), np.array([0.5]))]
    assert np.isnan([*measured(found, only).values()]).all()


def test_by_hand() -> None:
    """Of two objects one is found, after something that is none: precision 1/2 up to recall 1/2, then 0."""
    right = [ScoredBoxes(np.array([[0.0, 0, 10, 10], [20, 20, 30, 30]]), np.array([4, 4]))]
    found = [ScoredBoxes(np.array([[50.0, 50, 60, 60], [0, 0, 10, 9]]), np.array([4, 4]), np.array([0.9, 0.8]))]
    metrics = measured(found, right)
    assert metrics["AP50"] == pytest.approx(100 * 51 / 101 / 2)
    assert metrics["AP"] == pytest.approx(metrics["AP50"] * 9 / 10)  # an IoU of 0.9 is not 0.95


def test_nothing_found_and_boxes_without_area() -> None:
    right = [ScoredBoxes(np.array([[0.0, 0, 10, 10]]), np.array([0]))]
    nothing = [ScoredBoxes(np.zeros((0, 4)), np.zeros(0, int), np.zeros(0))]
    assert measured(nothing, right) == {"AP50": 0, "AP": 0, "AP50_any_class": 0}
    assert not iou(np.zeros((1, 4)), right[0].boxes).any()
