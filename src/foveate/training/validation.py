"""Validation of a model during training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from foveate.errors import unknown
from foveate.finite import FiniteOutputs
from foveate.training.progress import Progress
from foveate.training.randomness import random_states, restore_random_states


@dataclass
class Validation:
    """A measurement of a model, and the metric that decides."""

    measure: Callable[[nn.Module], dict[str, float]]
    """Returns metrics, {"bleu": 31.2, "loss": 1.7}. Called in eval mode without gradients."""
    metric: str
    """The metric that chooses the best checkpoint and stops training early."""
    higher_is_better: bool = True
    thorough: Callable[[nn.Module], dict[str, float]] | None = None
    """Metrics of the same names from other data, of the model as it will be used, for the choice in the end."""

    def run(self, model: nn.Module, in_the_end: bool = False) -> dict[str, float]:
        """Measure `model` without a change of its mode or of random states. Raises UserError for an unknown metric,
        and NotFinite for a model that computes numbers that are not finite."""
        measure = self.thorough if in_the_end and self.thorough else self.measure
        device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
        states, training = random_states(device), model.training
        model.eval()
        with torch.no_grad(), FiniteOutputs(model, "the model in validation"):
            metrics = {name: float(value) for name, value in measure(model).items()}
        model.train(training)
        restore_random_states(states, device)
        if self.metric not in metrics:
            raise unknown("metric", self.metric, metrics)
        return metrics

    def better(self, metrics: dict[str, float], than: dict[str, float]) -> bool:
        """Returns whether `metrics` are better. Any number is better than none or NaN; NaN is never better."""
        value, rival = metrics[self.metric], than.get(self.metric)
        if rival is None or rival != rival:
            return value == value
        return value > rival if self.higher_is_better else value < rival

    def note(self, metrics: dict[str, float], progress: Progress) -> None:
        """Record the metrics of the current step in `progress`."""
        progress.validated = progress.step
        if self.better(metrics, progress.best):
            progress.best, progress.best_step, progress.stale = metrics, progress.step, 0
        else:
            progress.stale += 1


def parts_to_validate(examples: Sequence[Any], count: int, thoroughness: int) -> tuple[Sequence[Any], Sequence[Any]]:
    """The examples of each validation, and those that choose in the end: up to `thoroughness` times as many.

    The best checkpoint is the best on the former by chance too, so that it is compared on examples that it was not
    picked by, unless they are too few.
    """
    often, others = examples[:count], examples[count : (1 + thoroughness) * count]
    return often, others if len(others) >= count else examples
