"""Where the types of automatic mixed precision do not apply."""

from contextlib import AbstractContextManager, nullcontext

import torch

WITH_AUTOCAST = tuple(filter(torch.amp.is_autocast_available, ("cpu", "cuda", "mps", "xpu")))
"""Types of devices that have autocast, found here because torch 2.11 cannot compile the question."""


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Inside, operations on a device run in the types that they are given. The device "meta" has no autocast."""
    if device.type not in WITH_AUTOCAST:
        return nullcontext()
    return torch.autocast(device.type, enabled=False)
