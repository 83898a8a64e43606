"""The objective of models that find named points: how far each is from where it should be."""

from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F

from foveate.contracts import IGNORE, Batch
from foveate.errors import at_least
from foveate.training.objectives.objective import Loss


@dataclass
class PointDistance:
    """The distances of points, as shares of the image, plus the cross-entropy of whether they are in the image.

    The output has `points` (B, K, 2) and logits (B, K). Targets are `points` (B, K, 2) and `labels` (B, K): IGNORE for
    a point that is not in the image. Logs the "distance" and the "presence_loss".
    """

    presence_weight: float = 0.05
    """Weight of the decision whether a point is in the image."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(0, "presence_weight", self.presence_weight)

    def __call__(self, output: Any, batch: Batch) -> Loss:
        inside = batch.labels != IGNORE
        apart = (output.points.float() - batch.targets["points"]).square().sum(-1).add(1e-8).sqrt()
        distance = apart.masked_fill(~inside, 0.0).sum()
        presence = F.binary_cross_entropy_with_logits(output.logits.float(), inside.float(), reduction="sum")
        log = {"distance": distance.detach(), "presence_loss": presence.detach()}
        return Loss(distance + self.presence_weight * presence, log)
