"""The variance of the gradient of hard attention, with and without the learned baseline."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Hard
from foveate.contracts import IGNORE, Batch, Choices
from foveate.training.objectives.cross_entropy import smoothed_cross_entropy
from foveate.training.objectives.objective import reinforce


@dataclass
class GradientVariance:
    """The variance of REINFORCE's gradient of all parameters on one batch: the mean squared distance from its mean."""

    without: float
    """Without a baseline."""
    learned: float
    """With the learned baseline."""


def gradient_variance(model: nn.Module, batch: Batch, seed: int, draws: int = 20) -> GradientVariance | None:
    """Draw choices as in training, but without dropout. None for a model without choices.

    The result depends on the seed, not on earlier random numbers.
    """
    model.eval()
    for module in model.modules():
        module.train(isinstance(module, Hard))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        variance = _measure(model, batch, draws)
    model.eval()
    return variance


def _measure(model: nn.Module, batch: Batch, draws: int) -> GradientVariance | None:
    counts = batch.labels != IGNORE
    without: list[Tensor] = []
    learned: list[Tensor] = []
    for _ in range(draws):
        output = model(**batch.inputs)
        if output.choices is None:
            return None
        _, rewards, _ = smoothed_cross_entropy(output.logits, batch.labels.masked_fill(~counts, 0), counts, 0.0)
        expected = output.choices.baseline.detach()
        for baseline, gradients in ((torch.zeros_like(expected), without), (expected, learned)):
            choices = replace(output.choices, baseline=baseline)
            gradients.append(_gradient(model, choices, rewards, counts))
    return GradientVariance(_variance(without), _variance(learned))


def _gradient(model: nn.Module, choices: Choices, rewards: Tensor, counts: Tensor) -> Float[Tensor, "P"]:
    """The gradient of the choices, for all parameters, as one vector."""
    total = reinforce(choices, rewards, counts, weight=1.0, entropy_bonus=0.0).total
    gradients = torch.autograd.grad(total, list(model.parameters()), retain_graph=True, allow_unused=True)
    return torch.cat([gradient.flatten() for gradient in gradients if gradient is not None])


def _variance(gradients: Sequence[Tensor]) -> float:
    return float(torch.stack(list(gradients)).var(0).sum())
