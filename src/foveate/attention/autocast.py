"""Where the types of automatic mixed precision do not apply."""

from contextlib import AbstractContextManager, nullcontext

import torch

from foveate.accelerator import NO_AUTOCAST


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Inside, operations on a device run in the types that they are given. The device "meta" has no autocast."""
    if device.type in NO_AUTOCAST:
        return nullcontext()
    return torch.autocast(device.type, enabled=False)
