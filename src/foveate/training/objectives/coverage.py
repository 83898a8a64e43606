"""Doubly stochastic attention: each place should be attended to equally much over a whole output."""

from dataclasses import dataclass

from foveate.contracts import Batch, Output
from foveate.errors import at_least
from foveate.training.objectives.objective import CrossEntropy, Loss, Objective


class DoublyStochastic:
    """Another objective plus `weight` times the sum over places of (1 - the attention that a place receives)^2.

    (Xu et al. 2015, equation 14.) An output without `coverage` (B, S) has the other objective alone. Logs the
    "coverage_loss".
    """

    def __init__(self, objective: Objective, weight: float) -> None:
        self.objective, self.weight = objective, weight

    def __call__(self, output: Output, batch: Batch) -> Loss:
        loss = self.objective(output, batch)
        coverage = getattr(output, "coverage", None)
        if coverage is None or not self.weight:
            return loss
        uneven = ((1 - coverage).square().sum(1) * (batch.weight > 0)).sum()
        return Loss(loss.total + self.weight * uneven, loss.log | {"coverage_loss": uneven.detach()})


@dataclass
class CoveredCrossEntropy(CrossEntropy):
    """Cross-entropy with this term, for models that say how much attention each place received."""

    coverage_weight: float = 1.0
    """Weight of the doubly stochastic term, for models with architecture.coverage."""

    def check(self) -> None:
        super().check()
        at_least(0, "coverage_weight", self.coverage_weight)

    def __call__(self, output: Output, batch: Batch) -> Loss:
        return DoublyStochastic(super().__call__, self.coverage_weight)(output, batch)
