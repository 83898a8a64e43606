"""The random numbers of a training: where they begin, and how to go on with them."""

from collections.abc import Mapping

import torch
from torch import Tensor

APART = 1_000_003
"""Between the seeds of two processes: each drops other places out."""


def begin_random_numbers(seed: int, rank: int, step: int = 0) -> None:
    """Seed PyTorch's generators for one of the processes of a training that begins, or goes on without its states."""
    torch.manual_seed(seed + APART * rank + step)


def random_states(device: torch.device) -> dict[str, Tensor]:
    """The states of PyTorch's generators: the CPU's and, of a CUDA GPU, the device's."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def restore_random_states(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Undo what was drawn since `random_states`; the state of a generator that `device` lacks is left out."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
