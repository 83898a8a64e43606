"""Several models that act as one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.contracts import State


@dataclass
class EnsembleState:
    """The state of each model."""

    parts: list[State]

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        for part in self.parts:
            part.reorder(rows)


class Ensemble(nn.Module):
    """An `Actor` that gives each action the mean of the probabilities that its models give it."""

    def __init__(self, models: Sequence[nn.Module]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)

    def start(self, **inputs: Tensor) -> EnsembleState:
        """Read the input with each model."""
        return EnsembleState([model.start(**inputs) for model in self.models])  # type: ignore[operator]

    def step(self, observation: dict[str, Tensor], state: EnsembleState) -> Float[Tensor, "R A"]:
        """The logarithms of the mean probabilities of each row's next action."""
        steps = zip(self.models, state.parts, strict=True)
        own = [model.step(observation, part).float().log_softmax(-1) for model, part in steps]  # type: ignore[operator]
        return torch.stack(own).logsumexp(0) - math.log(len(own))
