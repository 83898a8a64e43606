"""The random numbers of a training: seeding, saving and restoring them."""

from collections.abc import Mapping

import torch
from torch import Tensor

from foveate.accelerator import is_accelerator, random_state, set_random_state

SEED_STEP = 1_000_003
"""The difference between the seeds of two processes, so that their dropout differs."""


def begin_random_numbers(seed: int, rank: int, step: int = 0) -> None:
    """Seed PyTorch's generators for a process of a training that starts, or resumes without saved states."""
    torch.manual_seed(seed + SEED_STEP * rank + step)


def random_states(device: torch.device) -> dict[str, Tensor]:
    """The states of PyTorch's generators: the CPU's and, of an accelerator, the device's, by its type."""
    states = {"cpu": torch.get_rng_state()}
    if is_accelerator(device):
        states[device.type] = random_state(device)
    return states


def restore_random_states(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Restore the result of `random_states`. The state of a generator that `device` lacks is ignored."""
    torch.set_rng_state(states["cpu"])
    if is_accelerator(device) and device.type in states:
        set_random_state(states[device.type], device)
