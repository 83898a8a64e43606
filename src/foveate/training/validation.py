"""How to tell which of two models is better."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from foveate.errors import unknown
from foveate.training.randomness import random_states, restore_random_states
from foveate.training.settings import Progress


@dataclass
class Validation:
    """A measurement of a model, and which of its figures decides."""

    measure: Callable[[nn.Module], dict[str, float]]
    """Figures of a model, which comes in eval mode and without gradients: {"bleu": 31.2, "loss": 1.7}."""
    metric: str
    """The one of them that decides: which checkpoint is the best, and when training stops early."""
    higher_is_better: bool = True
    thorough: Callable[[nn.Module], dict[str, float]] | None = None
    """The same figures from other data, and of the model as it will be used: what chooses in the end, if given."""

    def run(self, model: nn.Module, in_the_end: bool = False) -> dict[str, float]:
        """Measure `model` and leave it, and all that is random, as it was. Raises UserError for an unknown metric."""
        measure = self.thorough if in_the_end and self.thorough else self.measure
        device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
        states, training = random_states(device), model.training
        model.eval()
        with torch.no_grad():
            metrics = {name: float(value) for name, value in measure(model).items()}
        model.train(training)
        restore_random_states(states, device)
        if self.metric not in metrics:
            raise unknown("metric", self.metric, metrics)
        return metrics

    def better(self, metrics: dict[str, float], than: dict[str, float]) -> bool:
        """Whether `metrics` beat the others. Any number beats none at all, and NaN; NaN beats nothing."""
        value, rival = metrics[self.metric], than.get(self.metric)
        if rival is None or rival != rival:
            return value == value
        return value > rival if self.higher_is_better else value < rival

    def note(self, metrics: dict[str, float], progress: Progress) -> None:
        """Enter the figures of the step that `progress` stands at."""
        progress.validated = progress.step
        if self.better(metrics, progress.best):
            progress.best, progress.best_step, progress.stale = metrics, progress.step, 0
        else:
            progress.stale += 1
