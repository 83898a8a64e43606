"""How decided attention is while a model is trained: heads that collapse, or scores that grow, show early."""

from typing import Any

import torch
from torch import nn

from foveate.contracts import Batch
from foveate.sight import look
from foveate.training.randomness import random_states, restore_random_states

EXAMPLES = 16
"""Examples of the batch that are looked at."""


def attention_statistics(model: nn.Module, batch: Batch) -> dict[str, dict[str, list[float]]]:
    """The statistics of each site that attends to some examples, with a number for each head (`Site.statistics`).

    The model and all random states are left as they were.
    """
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    some = batch.select(slice(0, EXAMPLES)).to(device)
    states, training = random_states(device), model.training
    model.eval()
    with torch.no_grad(), look(model, keep=["entropy", "score", "received"]) as sight:
        model(**some.inputs)
    model.train(training)
    restore_random_states(states, device)
    return {site.name: _rounded(site.statistics()._asdict()) for site in sight}


def _rounded(numbers: dict[str, Any]) -> dict[str, list[float]]:
    return {name: [round(number, 5) for number in values.tolist()] for name, values in numbers.items()}
