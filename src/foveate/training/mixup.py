"""Mixup: images and their labels are mixed in pairs (Zhang et al. 2018, https://arxiv.org/abs/1710.09412)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from foveate.contracts import Batch, Output
from foveate.training.objectives.objective import CrossEntropy, Loss, Objective

LABELS = ("labels", "label_weights", "holds")
"""The targets of which others are mixed in."""


class MixedLabels:
    """Another objective for the labels of a batch and for the labels that are mixed in, by their share.

    The targets `mixed_labels` (B, T) are the latter, `mixed_share` (B,) their share, the same for all rows. A batch
    without them has the other objective alone. What is logged is that of the batch's own labels, whose share is at
    least a half.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    def __call__(self, output: Output, batch: Batch) -> Loss:
        loss = self.objective(output, batch)
        if "mixed_labels" not in batch.targets:
            return loss
        other = self.objective(output, replace(batch, targets=_mixed_in(batch.targets)))
        share = batch.targets["mixed_share"].mean()
        return Loss((1 - share) * loss.total + share * other.total, loss.log)


def _mixed_in(targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The labels that are mixed in, and their weights where labels have any."""
    return {name: targets[f"mixed_{name}"] for name in LABELS if name in targets}


@dataclass
class MixedCrossEntropy(CrossEntropy):
    """Cross-entropy, for labels that are mixed in too."""

    def __call__(self, output: Output, batch: Batch) -> Loss:
        return MixedLabels(super().__call__)(output, batch)
