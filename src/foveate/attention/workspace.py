"""Memory that is used again for block after block, instead of being freed and asked for each time.

Large memory that is freed goes back to the system, and fresh memory costs a page fault for every few thousand bytes
that are first written: as much time as the computation itself.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class _Workspace(threading.local):
    reusing = False
    store: Tensor | None = None


_workspace = _Workspace()


@contextmanager
def reused() -> Iterator[None]:
    """Inside, `empty` gives the same memory each time, so that its last result must have served its purpose."""
    _workspace.reusing = True
    try:
        yield
    finally:
        _workspace.reusing, _workspace.store = False, None


def empty(shape: torch.Size, like: Tensor) -> Tensor:
    """Memory for a tensor of this shape, of the type and on the device of `like`; not initialised."""
    if not _workspace.reusing:
        return like.new_empty(shape)
    store, count = _workspace.store, shape.numel()
    if store is None or store.numel() < count or store.dtype != like.dtype or store.device != like.device:
        store = _workspace.store = like.new_empty(count)
    return store[:count].view(shape)
