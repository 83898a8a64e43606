"""The objective of a generator and a discriminator that are trained against each other."""

from dataclasses import dataclass
from typing import Any

import torch

from foveate.contracts import Batch
from foveate.training.objectives.objective import Loss


@dataclass
class Hinge:
    """The hinge loss of both (Lim and Ye 2017, https://arxiv.org/abs/1705.02894): the discriminator wants scores above
    1 for real images and below -1 for generated ones, the generator large scores for what it generates.

    The output is a `GANOutput`, whose scores let each loss reach one of the two alone. Logs both losses, how many
    scores have the right sign (`told_apart`), and the scale of each layer of self-attention.
    """

    def __call__(self, output: Any, batch: Batch) -> Loss:
        real, generated, judged = (part.float() for part in (output.logits, output.generated, output.judged))
        discriminator = torch.relu(1 - real).sum() + torch.relu(1 + generated).sum()
        generator = -judged.sum()
        right = ((real > 0).sum() + (generated < 0).sum()) / 2
        log = {"discriminator": discriminator.detach(), "generator": generator.detach(), "told_apart": right}
        log |= {f"scale_{name}": len(real) * scale.float() for name, scale in output.scales.items()}
        return Loss(discriminator + generator, log)
