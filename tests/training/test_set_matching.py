"""Set matching against transformers' loss of DETR, and by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import DetrConfig, ResNetConfig
from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss

from foveate.contracts import IGNORE, Batch
from foveate.errors import UserError
from foveate.models.vision.detections import Detections
from foveate.training.objectives.set_matching import (
    FocalClasses,
    SetLoss,
    SetMatching,
    SoftmaxClasses,
    VarifocalClasses,
    assigned,
)


def detections(seed: int, queries: int = 7, classes: int = 4) -> Detections:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(3, queries, classes, generator=generator).requires_grad_()
    boxes = torch.rand(3, queries, 4, generator=generator) * 0.5 + 0.2
    return Detections(logits=logits, boxes=boxes.requires_grad_())


def batch(labels: list[list[int]]) -> Batch:
    """Objects of three images; -100 is padding."""
    targets = torch.tensor(labels)
    boxes = torch.rand(*targets.shape, 4, generator=torch.Generator().manual_seed(9)) * 0.5 + 0.2
    return Batch({}, {"boxes": boxes, "labels": targets}, (targets != IGNORE).sum(1), "images")


OBJECTS = [[2, 0, 1], [1, IGNORE, IGNORE], [IGNORE] * 3]


def test_as_transformers() -> None:
    """The same loss of the last layer and of an earlier one, and the same gradients; an image has no object."""
    given, layers = batch(OBJECTS), [detections(1), detections(2)]
    output = layers[1]
    output.earlier = (layers[0],)
    loss = SetLoss(SoftmaxClasses(no_object=0.1))(output, given).total / given.total_weight
    (ours,) = torch.autograd.grad(loss, layers[0].boxes, retain_graph=True)
    config = DetrConfig(backbone_config=ResNetConfig(), num_labels=3, decoder_layers=2, auxiliary_loss=True)
    boxes, labels = given.targets["boxes"], given.targets["labels"]
    wanted = [
        {"class_labels": row[row != IGNORE], "boxes": some[row != IGNORE]}
        for row, some in zip(labels, boxes, strict=True)
    ]
    logits, found = (torch.stack([getattr(layer, name) for layer in layers]) for name in ("logits", "boxes"))
    expected, _, _ = ForObjectDetectionLoss(logits[-1], wanted, "cpu", found[-1], config, logits, found)
    (theirs,) = torch.autograd.grad(expected, layers[0].boxes)
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_each_object_gets_the_nearest_query_and_no_query_two() -> None:
    """Both objects lie nearest to query 1; the worse fit of the two gets query 2."""
    boxes = torch.tensor([[[0.1, 0.1, 0.1, 0.1], [0.5, 0.5, 0.2, 0.2], [0.8, 0.8, 0.2, 0.2]]])
    layer = SimpleNamespace(boxes=boxes, logits=torch.zeros(1, 3, 2))
    wanted = torch.tensor([[[0.6, 0.6, 0.2, 0.2], [0.5, 0.5, 0.2, 0.2], [0.5, 0.5, 0.5, 0.5]]])
    labels = torch.tensor([[0, 1, IGNORE]])
    matched = assigned(SetLoss(FocalClasses()).costs(layer, wanted, labels).numpy(), (labels != IGNORE).numpy())
    assert matched.tolist() == [[2, 1, IGNORE]]


def test_more_objects_than_queries() -> None:
    costs = SetLoss(SoftmaxClasses()).costs(detections(3, queries=2), *batch([[0, 1, 2]] * 3).targets.values())
    matched = np.sort(assigned(costs.numpy(), np.full((3, 3), True)))
    assert matched.tolist() == [[IGNORE, 0, 1]] * 3


@pytest.mark.parametrize("classes", [SoftmaxClasses(), FocalClasses()], ids=["softmax", "focal"])
def test_images_without_objects(classes: object) -> None:
    """They weigh nothing, and yet they teach that there is nothing; boxes learn nothing."""
    given, output = batch([[IGNORE]] * 3), detections(4)
    loss = SetLoss(classes)(output, given)
    loss.total.backward()
    assert given.total_weight == 0
    assert float(loss.log["box_loss"]) == float(loss.log["iou_loss"]) == 0
    assert bool(output.logits.grad.isfinite().all())
    assert bool(output.logits.grad.any())
    assert not output.boxes.grad.any()


def test_focal_loss_by_hand() -> None:
    """Two queries, of which the first has an object of class 1: 0.25 (1-p)^2 (-ln p), else 0.75 p^2 (-ln(1-p))."""
    logits = torch.tensor([[[0.0, 0.0], [0.0, 0.0]]])
    loss = FocalClasses(weight=1.0).loss(logits, torch.tensor([[1, IGNORE]]), 1, torch.zeros(1, 2))
    quarter = 0.25 * torch.log(torch.tensor(2.0))
    torch.testing.assert_close(loss, 0.25 * quarter + 3 * 0.75 * quarter)


def test_denoising_queries_know_their_objects() -> None:
    """Boxes that are right cost nothing; groups count together as much as one."""
    given, output = batch(OBJECTS), detections(5, classes=3)
    plain = SetLoss(FocalClasses())(output, given).total
    labels, boxes = given.targets["labels"].repeat(1, 2), given.targets["boxes"].repeat(1, 2, 1)
    logits = torch.nn.functional.one_hot(labels.clamp_min(0), 3) * 60.0 - 30
    output.denoised = Detections(logits=logits, boxes=boxes)
    torch.testing.assert_close(SetLoss(FocalClasses())(output, given).total, plain)
    moved = boxes + torch.tensor([0.1, 0, 0, 0])
    output.denoised = Detections(logits=logits, boxes=moved)
    two = SetLoss(FocalClasses())(output, given).total - plain
    output.denoised = Detections(logits=logits[:, :3], boxes=moved[:, :3])
    torch.testing.assert_close(SetLoss(FocalClasses())(output, given).total - plain, two)
    assert two.item() > 4 * 5 * 0.1


def test_the_classes_follow_from_the_model() -> None:
    """And the weights from the settings."""
    given, output = batch(OBJECTS), detections(6)
    for no_object, classes in ((True, SoftmaxClasses), (False, FocalClasses)):
        loss = SetMatching(box_weight=0.0).fit(SimpleNamespace(no_object=no_object))
        assert isinstance(loss.classes, classes)
        assert float(loss(output, given).log["box_loss"]) == 0 < float(loss(output, given).log["iou_loss"])
    with pytest.raises(UserError, match=r"iou_weight is -1\.0, but must be at least 0"):
        SetMatching(iou_weight=-1.0).check()


def test_varifocal_loss_by_hand() -> None:
    """The right class learns the overlap, weighted by it; a wrong one counts little where it is unsure."""
    logits = torch.zeros(1, 2, 2)
    loss = VarifocalClasses(alpha=0.75).loss(logits, torch.tensor([[1, IGNORE]]), 1, torch.tensor([[0.6, 0.0]]))
    assert float(loss) == pytest.approx(math.log(2) * (0.6 + 3 * 0.75 * 0.5**2))
