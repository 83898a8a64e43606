"""The objective of models that compare all images of a batch with all captions."""

import torch
from torch import Tensor

from foveate.contracts import Batch, Output
from foveate.training.objectives import Loss


class Contrastive:
    """The cross-entropy of each image's caption among those of the batch, and of each caption's image (InfoNCE).

    (van den Oord et al. 2018; Radford et al. 2021.) The targets are `labels` (B, 1), the number of each caption:
    captions that are equal belong to each other's images too. Logs the "accuracy" of the captions for the images.
    """

    def __call__(self, output: Output, batch: Batch) -> Loss:
        logits = output.logits.float()
        same = batch.labels == batch.labels.mT
        total = (_nats(logits, same) + _nats(logits.mT, same)) / 2
        best = same.gather(1, logits.detach().argmax(1, keepdim=True))
        return Loss(total, {"accuracy": best.sum()})


def _nats(logits: Tensor, same: Tensor) -> Tensor:
    """What the rows lack of all probability on what belongs to them, summed."""
    belonging = torch.logsumexp(logits.masked_fill(~same, -torch.inf), 1)
    return (torch.logsumexp(logits, 1) - belonging).sum()
