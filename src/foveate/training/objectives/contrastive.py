"""The objectives of models that compare all images of a batch with all captions, or texts with texts."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from foveate.contracts import Batch, Output
from foveate.errors import at_least
from foveate.training.objectives.objective import Loss


@dataclass
class Contrastive:
    """The cross-entropy of each image's caption among those of the batch, and of each caption's image (InfoNCE).

    (van den Oord et al. 2018; Radford et al. 2021.) The targets are `labels` (B, 1), the number of each caption:
    captions that are equal belong to each other's images too. Logs the "accuracy" of the captions for the images.
    """

    def fit(self, architecture: Any) -> "Contrastive":
        """That of a model with this config: a SigLIP decides each pair by itself."""
        return PairwiseSigmoid() if getattr(architecture, "kind", None) == "siglip" else self

    def __call__(self, output: Output, batch: Batch) -> Loss:
        logits = output.logits.float()
        same = batch.labels == batch.labels.mT
        best = same.gather(1, logits.detach().argmax(1, keepdim=True))
        return Loss(self._total(logits, same), {"accuracy": best.sum()})

    def _total(self, logits: Tensor, same: Tensor) -> Tensor:
        return (_nats(logits, same) + _nats(logits.mT, same)) / 2


@dataclass
class PairwiseSigmoid(Contrastive):
    """The cross-entropy of whether each image and each caption of a batch belong together, summed over the captions
    (Zhai et al. 2023)."""

    def _total(self, logits: Tensor, same: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(logits, same.float(), reduction="sum")


@dataclass
class ContrastiveTexts:
    """The contrastive loss of pairs of texts: the cross-entropy of each source's target among those of the batch, and
    of each target's source, by the cosines of their vectors (Henderson et al. 2017; Gao et al. 2021).

    The logits (2B, 1, C) are vectors, a source's and behind it its target's. Equal texts belong to each other's pairs.
    """

    scale: float = 20.0
    """What cosines are multiplied by before the softmax over the texts of a batch."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(0, "scale", self.scale)

    def __call__(self, output: Output, batch: Batch) -> Loss:
        vectors = F.normalize(output.logits[:, 0].float(), dim=-1)
        logits = self.scale * vectors[0::2] @ vectors[1::2].mT
        labels, sources = batch.labels, batch.targets["sources"]
        same = (labels == labels.mT) | (sources == sources.mT)
        total = (_nats(logits, same) + _nats(logits.mT, same)) / 2
        best = same.gather(1, logits.detach().argmax(1, keepdim=True))
        return Loss(total, {"accuracy": best.sum()})


def _nats(logits: Tensor, same: Tensor) -> Tensor:
    """Sums the cross-entropy of the rows, in nats."""
    belonging = torch.logsumexp(logits.masked_fill(~same, -torch.inf), 1)
    return (torch.logsumexp(logits, 1) - belonging).sum()
