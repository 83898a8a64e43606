"""The objective of detectors whose queries are a set (Carion et al. 2020, https://arxiv.org/abs/2005.12872).

B  batch    Q  queries    K  objects of an image, padded    N  classes
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveate.contracts import IGNORE, Batch
from foveate.errors import UserError, at_least
from foveate.nn import box_corners, generalized_iou, overlap
from foveate.training.objectives.objective import Loss


@runtime_checkable
class ClassLoss(Protocol):
    """The loss of classes."""

    def cost(self, logits: Float[Tensor, "B Q N"], labels: Int[Tensor, "B K"]) -> Float[Tensor, "B Q K"]:
        """Returns the cost of giving a query an object; labels are 0 where there is none."""

    def loss(
        self, logits: Float[Tensor, "B Q N"], labels: Int[Tensor, "B Q"], objects: int, overlaps: Float[Tensor, "B Q"]
    ) -> Float[Tensor, ""]:
        """The summed loss for queries with these labels: IGNORE where a query has no object. `overlaps` are the shares
        in which the boxes of query and object overlap."""


class SoftmaxClasses:
    """Cross-entropy over the classes and "no object", the last one, which counts little because it is frequent.

    The mean over the queries is multiplied by the number of objects, since the loop divides by it.
    """

    def __init__(self, no_object: float = 0.1) -> None:
        """`no_object` is the weight of queries without an object."""
        self.no_object = no_object

    def cost(self, logits: Float[Tensor, "B Q N"], labels: Int[Tensor, "B K"]) -> Float[Tensor, "B Q K"]:
        return -_pick(logits.softmax(-1), labels)

    def loss(
        self, logits: Float[Tensor, "B Q N"], labels: Int[Tensor, "B Q"], objects: int, overlaps: Float[Tensor, "B Q"]
    ) -> Float[Tensor, ""]:
        last = logits.shape[-1] - 1
        labels = torch.where(labels == IGNORE, last, labels)
        weights = torch.where(labels == last, self.no_object, 1.0)
        losses = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        return (losses * weights.flatten()).sum() / weights.sum() * max(objects, 1)


class FocalClasses:
    """Each class decided by itself, easy decisions counting little (Lin et al. 2017, https://arxiv.org/abs/1708.02002),
    as in Deformable DETR (Zhu et al. 2021)."""

    def __init__(self, weight: float = 2.0, alpha: float = 0.25, gamma: float = 2.0) -> None:
        """`weight` is that of this loss beside the others, `alpha` that of the class that is right."""
        self.weight, self.alpha, self.gamma = weight, alpha, gamma

    def cost(self, logits: Float[Tensor, "B Q N"], labels: Int[Tensor, "B K"]) -> Float[Tensor, "B Q K"]:
        wrong, right = self._losses(logits)
        return self.weight * _pick(right - wrong, labels)

    def loss(
        self, logits: Float[Tensor, "B Q N"], labels: Int[Tensor, "B Q"], objects: int, overlaps: Float[Tensor, "B Q"]
    ) -> Float[Tensor, ""]:
        wrong, right = self._losses(logits)
        chosen = _chosen(logits, labels)
        return self.weight * torch.where(chosen, right, wrong).sum()

    def _losses(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """The losses of each class if it is wrong and if it is right."""
        share = logits.sigmoid()
        wrong = (1 - self.alpha) * share**self.gamma * F.softplus(logits)
        return wrong, self.alpha * (1 - share) ** self.gamma * F.softplus(-logits)


class VarifocalClasses(FocalClasses):
    """Likewise, but the score of the class that is right learns how well the box fits (Zhang et al. 2021,
    https://arxiv.org/abs/2008.13367), as in RT-DETR (Zhao et al. 2023)."""

    def __init__(self, alpha: float = 0.75) -> None:
        """`alpha` is the weight of classes that are wrong; matching is that of the focal loss."""
        super().__init__()
        self.wrong_weight = alpha

    def loss(
        self, logits: Float[Tensor, "B Q N"], labels: Int[Tensor, "B Q"], objects: int, overlaps: Float[Tensor, "B Q"]
    ) -> Float[Tensor, ""]:
        chosen = _chosen(logits, labels)
        wanted = overlaps[..., None] * chosen
        weights = torch.where(chosen, wanted, self.wrong_weight * logits.detach().sigmoid() ** self.gamma)
        return F.binary_cross_entropy_with_logits(logits, wanted, weights, reduction="sum")


def _chosen(logits: Float[Tensor, "B Q N"], labels: Int[Tensor, "B Q"]) -> Bool[Tensor, "B Q N"]:
    """Marks the class that is right, if there is an object."""
    return F.one_hot(labels.clamp_min(0), logits.shape[-1]).bool() & (labels != IGNORE)[..., None]


@dataclass
class SetMatching:
    """The settings of `SetLoss`."""

    box_weight: float = 5.0
    """Weight of the distance of boxes, in the loss and in matching."""
    iou_weight: float = 2.0
    """Weight of how little boxes overlap (generalized IoU), in the loss and in matching."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        for name in ("box_weight", "iou_weight"):
            at_least(0, name, getattr(self, name))

    def fit(self, architecture: Any) -> "SetLoss":
        """The loss for the classes that a model decides: one by one, perhaps by how well boxes fit, or with one for
        "no object"."""
        one_by_one = VarifocalClasses if getattr(architecture, "iou_aware", False) else FocalClasses
        return SetLoss(SoftmaxClasses() if architecture.no_object else one_by_one(), self)


class SetLoss:
    """Gives each object the query that fits it best, no query twice, and compares them; other queries have no object.

    The output is a `Detections`; each of its earlier layers is matched anew and counts as much as the last one. Targets
    are `boxes` (B, K, 4), centre and size, and `labels` (B, K) with IGNORE for padding. Logs the losses of the last
    layer.
    """

    def __init__(self, classes: ClassLoss, settings: SetMatching | None = None) -> None:
        self.classes, self.settings = classes, settings or SetMatching()

    def __call__(self, output: Any, batch: Batch) -> Loss:
        boxes = batch.targets["boxes"]
        layers = [*output.earlier, output]
        total = torch.zeros((), device=boxes.device)
        for layer in layers:
            labels = batch.targets["labels"]
            if layer.logits.shape[-1] == 1:  # it only decides whether there is an object
                labels = labels.clamp_max(0)
            parts = self._compare(layer, boxes, labels, self.match(layer, boxes, labels))
            total = total + sum(parts.values())
            if layer.denoised is not None:
                total = total + self._denoise(layer.denoised, boxes, labels)
        return Loss(total, {name: value.detach() for name, value in parts.items()})

    @torch.no_grad()
    def match(self, layer: Any, boxes: Float[Tensor, "B K 4"], labels: Int[Tensor, "B K"]) -> Int[Tensor, "B K"]:
        """The query of each object; IGNORE for padding, and for the objects that are more than the queries."""
        assign = _scipy_assignment()
        found = layer.boxes.float()
        cost = self.classes.cost(layer.logits.float(), labels.clamp_min(0))
        cost = cost + self.settings.box_weight * torch.cdist(found, boxes, p=1)
        cost = cost - self.settings.iou_weight * generalized_iou(
            box_corners(found)[:, :, None], box_corners(boxes)[:, None]
        )
        costs, real = cost.nan_to_num(1e6, 1e6, -1e6).cpu().numpy(), (labels != IGNORE).cpu().numpy()
        matched = np.full(labels.shape, IGNORE, np.int64)
        for row, places in enumerate(map(np.flatnonzero, real)):
            queries, objects = assign(costs[row][:, places])
            matched[row, places[objects]] = queries
        return torch.from_numpy(matched).to(labels.device)

    def _compare(self, layer: Any, boxes: Tensor, labels: Tensor, matched: Int[Tensor, "B K"]) -> dict[str, Tensor]:
        """The losses of a layer, summed over objects."""
        rows, places = (matched != IGNORE).nonzero(as_tuple=True)
        queries = matched[rows, places]
        wanted = labels.new_full(layer.logits.shape[:2], IGNORE)
        wanted[rows, queries] = labels[rows, places]
        overlaps = layer.boxes.new_zeros(wanted.shape, dtype=torch.float32)
        overlaps[rows, queries] = _overlaps(layer.boxes.float()[rows, queries], boxes[rows, places])
        classes = self.classes.loss(layer.logits.float(), wanted, len(rows), overlaps)
        return {"class_loss": classes, **self._box_losses(layer.boxes.float()[rows, queries], boxes[rows, places])}

    def _denoise(self, layer: Any, boxes: Tensor, labels: Tensor) -> Tensor:
        """The losses of the denoising queries, whose objects are known, by group."""
        groups = layer.boxes.shape[1] // labels.shape[1]
        labels, boxes = labels.repeat(1, groups), boxes.repeat(1, groups, 1)
        real: Bool[Tensor, "B T"] = labels != IGNORE
        losses = self._box_losses(layer.boxes.float()[real], boxes[real])
        overlaps = _overlaps(layer.boxes.float()[real], boxes[real])[None]
        classes = self.classes.loss(layer.logits.float()[real][None], labels[real][None], int(real.sum()), overlaps)
        return (classes + sum(losses.values())) / groups

    def _box_losses(self, found: Float[Tensor, "M 4"], wanted: Float[Tensor, "M 4"]) -> dict[str, Tensor]:
        """The summed distances of boxes, and how much they miss of an IoU of 1."""
        agreement = generalized_iou(box_corners(found), box_corners(wanted))
        distance, missing = (found - wanted).abs().sum(), (1 - agreement).sum()
        return {"box_loss": self.settings.box_weight * distance, "iou_loss": self.settings.iou_weight * missing}


def _overlaps(found: Float[Tensor, "M 4"], wanted: Float[Tensor, "M 4"]) -> Float[Tensor, "M"]:
    """How well boxes fit, without gradients."""
    return overlap(box_corners(found.detach()), box_corners(wanted))


def _pick(scores: Float[Tensor, "B Q N"], labels: Int[Tensor, "B K"]) -> Float[Tensor, "B Q K"]:
    """The score that each query gives to each object's class."""
    return scores.gather(2, labels[:, None].expand(-1, scores.shape[1], -1))


def _scipy_assignment() -> Any:
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError:
        raise UserError("training a detector needs scipy: pip install 'foveate[vision]'") from None
    return linear_sum_assignment
