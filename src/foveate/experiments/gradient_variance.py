"""How much the gradient of hard choices varies from draw to draw, and what the learned baseline takes off that."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Hard
from foveate.contracts import IGNORE, Batch, Choices
from foveate.training.cross_entropy import smoothed_cross_entropy
from foveate.training.objectives import reinforce


@dataclass
class GradientVariance:
    """Of REINFORCE's gradient of all parameters, on one batch: the mean squared distance from its mean."""

    without: float
    """With the reward itself as the signal."""
    learned: float
    """With what the learned baseline did not expect of it."""


def gradient_variance(model: nn.Module, batch: Batch, seed: int, draws: int = 20) -> GradientVariance | None:
    """Draw choices as in training, but without dropout; None for a model that makes none. The same seed draws the same,
    whatever was drawn before."""
    model.eval()
    for module in model.modules():
        module.train(isinstance(module, Hard))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        found = _drawn(model, batch, draws)
    model.eval()
    return found


def _drawn(model: nn.Module, batch: Batch, draws: int) -> GradientVariance | None:
    counts = batch.labels != IGNORE
    without: list[Tensor] = []
    learned: list[Tensor] = []
    for _ in range(draws):
        output = model(**batch.inputs)
        if output.choices is None:
            return None
        _, rewards, _ = smoothed_cross_entropy(output.logits, batch.labels.masked_fill(~counts, 0), counts, 0.0)
        expected = output.choices.baseline.detach()
        for baseline, found in ((torch.zeros_like(expected), without), (expected, learned)):
            choices = replace(output.choices, baseline=baseline)
            found.append(_gradient(model, choices, rewards, counts))
    return GradientVariance(_variance(without), _variance(learned))


def _gradient(model: nn.Module, choices: Choices, rewards: Tensor, counts: Tensor) -> Float[Tensor, "P"]:
    """Of the choices alone, of all parameters in a row."""
    total = reinforce(choices, rewards, counts, weight=1.0, entropy_bonus=0.0).total
    found = torch.autograd.grad(total, list(model.parameters()), retain_graph=True, allow_unused=True)
    return torch.cat([gradient.flatten() for gradient in found if gradient is not None])


def _variance(gradients: Sequence[Tensor]) -> float:
    return float(torch.stack(list(gradients)).var(0).sum())
