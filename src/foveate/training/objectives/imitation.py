"""The objective of imitation: what an agent does, beside what was recorded."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.contracts import Batch, Output
from foveate.training.objectives.objective import Loss, SmoothedCrossEntropy


@dataclass
class Imitation(SmoothedCrossEntropy):
    """Recorded choices are learned by cross-entropy, recorded movements by their squared error."""

    def __call__(self, output: Output, batch: Batch) -> Loss:
        return super().__call__(output, batch) if "labels" in batch.targets else squared_error(output.logits, batch)


def squared_error(numbers: Float[Tensor, "B T A"], batch: Batch) -> Loss:
    """The squared error of each action, summed over its numbers; the mean of a Gaussian is learned so.

    The targets are `actions` (B, T, A), of which a row has as many as its weight. Logs the "squared_error".
    """
    actions = batch.targets["actions"]
    counts = torch.arange(actions.shape[1], device=actions.device) < batch.weight.to(actions.device)[:, None]
    total = ((numbers.float() - actions).square().sum(-1) * counts).sum()
    return Loss(total, {"squared_error": total.detach()})
