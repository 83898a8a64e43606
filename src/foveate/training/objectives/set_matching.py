"""The objective of detectors whose queries are a set (Carion et al. 2020, https://arxiv.org/abs/2005.12872).

B  batch    Q  queries    K  objects of an image, padded    N  classes
"""

from collections.abc import Sequence
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

MOST_PLACES = 10
"""The most places that learn one object."""


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
        wanted = [_labels_of(layer, batch.targets["labels"]) for layer in layers]
        costs = [self.costs(layer, boxes, labels) for layer, labels in zip(layers, wanted, strict=True)]
        real, *read = _on_cpu([wanted[0] != IGNORE, *costs])
        for layer, labels, cost in zip(layers, wanted, read, strict=True):
            parts = self._compare(layer, boxes, labels, _places(assigned(cost, real > 0), boxes.device))
            total = total + sum(parts.values())
            if layer.denoised is not None:
                total = total + self._denoise(layer.denoised, boxes, labels, real > 0)
        if output.places is not None:
            total = total + self._many(output.places, boxes, _labels_of(output.places, batch.targets["labels"]))
        return Loss(total, {name: value.detach() for name, value in parts.items()})

    @torch.no_grad()
    def costs(self, layer: Any, boxes: Float[Tensor, "B K 4"], labels: Int[Tensor, "B K"]) -> Float[Tensor, "B Q K"]:
        """What it costs to give a query an object."""
        found = layer.boxes.float()
        cost = self.classes.cost(layer.logits.float(), labels.clamp_min(0))
        cost = cost + self.settings.box_weight * torch.cdist(found, boxes, p=1)
        cost = cost - self.settings.iou_weight * generalized_iou(
            box_corners(found)[:, :, None], box_corners(boxes)[:, None]
        )
        return cost.nan_to_num(1e6, 1e6, -1e6)

    @torch.no_grad()
    def owners(self, layer: Any, boxes: Float[Tensor, "B K 4"], labels: Int[Tensor, "B K"]) -> Int[Tensor, "B S"]:
        """The object of each place; IGNORE for none.

        An object is given as many of the places that fit it best as fit it well: the sum of how much the ten best
        boxes overlap it (Ge et al. 2021, https://arxiv.org/abs/2107.08430, section 2.1).
        """
        costs = self.costs(layer, boxes, labels).masked_fill((labels == IGNORE)[:, None], torch.inf)
        overlaps = overlap(box_corners(layer.boxes.float())[:, :, None], box_corners(boxes)[:, None])
        best = min(MOST_PLACES, costs.shape[1])
        wanted = overlaps.topk(best, 1).values.sum(1, keepdim=True).round().clamp_min(1)
        cheapest = costs.topk(best, 1, largest=False).indices
        rank = torch.arange(best, device=costs.device)[:, None]
        chosen = torch.zeros_like(costs, dtype=torch.bool).scatter(1, cheapest, rank < wanted)
        least = costs.masked_fill(~chosen, torch.inf).min(2)
        return torch.where(least.values.isinf(), IGNORE, least.indices)

    def _many(self, layer: Any, boxes: Tensor, labels: Tensor) -> Tensor:
        """The losses of places, several of which may have one object, as if each object had one."""
        owners = self.owners(layer, boxes, labels)
        has, own = owners != IGNORE, owners.clamp_min(0)
        wanted = torch.where(has, labels.gather(1, own), IGNORE)
        found, right = layer.boxes.float(), boxes.gather(1, own[..., None].expand(-1, -1, 4))
        classes = self.classes.loss(layer.logits.float(), wanted, 1, has * _overlaps(found, right))
        total = classes + sum(self._box_losses(found, right, has).values())
        return total * (labels != IGNORE).sum() / has.sum().clamp_min(1)

    def _compare(self, layer: Any, boxes: Tensor, labels: Tensor, matched: Int[Tensor, "3 M"]) -> dict[str, Tensor]:
        """The losses of a layer, summed over objects: `matched` has the row, the place and the query of each."""
        rows, places, queries = matched
        wanted = labels.new_full(layer.logits.shape[:2], IGNORE)
        wanted[rows, queries] = labels[rows, places]
        overlaps = layer.boxes.new_zeros(wanted.shape, dtype=torch.float32)
        overlaps[rows, queries] = _overlaps(layer.boxes.float()[rows, queries], boxes[rows, places])
        classes = self.classes.loss(layer.logits.float(), wanted, len(rows), overlaps)
        return {"class_loss": classes, **self._box_losses(layer.boxes.float()[rows, queries], boxes[rows, places])}

    def _denoise(self, layer: Any, boxes: Tensor, labels: Tensor, real: Bool[np.ndarray, "B K"]) -> Tensor:
        """The losses of the denoising queries, whose objects are known, by group."""
        groups = layer.boxes.shape[1] // labels.shape[1]
        labels, boxes = labels.repeat(1, groups), boxes.repeat(1, groups, 1)
        rows, places = torch.from_numpy(np.stack(np.tile(real, (1, groups)).nonzero())).to(labels.device)
        found, sought = layer.boxes.float()[rows, places], boxes[rows, places]
        losses, overlaps = self._box_losses(found, sought), _overlaps(found, sought)[None]
        logits, labels = layer.logits.float()[rows, places][None], labels[rows, places][None]
        classes = self.classes.loss(logits, labels, labels.shape[1], overlaps)
        return (classes + sum(losses.values())) / groups

    def _box_losses(
        self, found: Float[Tensor, "... 4"], wanted: Float[Tensor, "... 4"], counts: Bool[Tensor, "..."] | None = None
    ) -> dict[str, Tensor]:
        """The summed distances of the boxes that count, and how much they miss of an IoU of 1."""
        missing = 1 - generalized_iou(box_corners(found), box_corners(wanted))
        distance = (found - wanted).abs().sum(-1)
        if counts is not None:
            missing, distance = missing * counts, distance * counts
        distance, missing = distance.sum(), missing.sum()
        return {"box_loss": self.settings.box_weight * distance, "iou_loss": self.settings.iou_weight * missing}


def assigned(costs: Float[np.ndarray, "B Q K"], real: Bool[np.ndarray, "B K"]) -> Int[np.ndarray, "B K"]:
    """The query of each object; IGNORE for padding, and for the objects that are more than the queries."""
    assign = _scipy_assignment()
    matched = np.full(real.shape, IGNORE, np.int64)
    for row, places in enumerate(map(np.flatnonzero, real)):
        queries, objects = assign(costs[row][:, places])
        matched[row, places[objects]] = queries
    return matched


def _places(matched: Int[np.ndarray, "B K"], device: torch.device) -> Int[Tensor, "3 M"]:
    """The row, the place and the query of each object that has one."""
    rows, places = (matched != IGNORE).nonzero()
    return torch.from_numpy(np.stack([rows, places, matched[rows, places]])).to(device)


def _labels_of(layer: Any, labels: Int[Tensor, "B K"]) -> Int[Tensor, "B K"]:
    """The labels of a layer, which may only decide whether there is an object."""
    return labels.clamp_max(0) if layer.logits.shape[-1] == 1 else labels


def _on_cpu(tensors: Sequence[Tensor]) -> list[np.ndarray]:
    """Numbers of a device, which the CPU waits for once."""
    flat = torch.cat([tensor.float().flatten() for tensor in tensors]).cpu()
    parts = flat.split([tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape).numpy() for part, tensor in zip(parts, tensors, strict=True)]


def _overlaps(found: Float[Tensor, "... 4"], wanted: Float[Tensor, "... 4"]) -> Float[Tensor, "..."]:
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
