"""Memory that is used again for block after block, instead of being freed and asked for each time.

Large memory that is freed goes back to the system, and fresh memory costs a page fault for every few thousand bytes
that are first written: as much time as the computation itself.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class _Scratch(threading.local):
    stores: list[Tensor] | None = None
    used = 0


_scratch = _Scratch()


@contextmanager
def reuse() -> Iterator[None]:
    """Inside, what `empty` gave for one block it gives again for the next."""
    _scratch.stores, _scratch.used = [], 0
    try:
        yield
    finally:
        _scratch.stores = None


def next_block() -> None:
    """All that was computed in memory of `empty` has served its purpose."""
    _scratch.used = 0


def empty(shape: torch.Size, like: Tensor) -> Tensor:
    """Memory for a tensor of this shape, of the type and on the device of `like`; not initialised."""
    stores, count = _scratch.stores, shape.numel()
    if stores is None:
        return like.new_empty(shape)
    if _scratch.used == len(stores):
        stores.append(like.new_empty(0))
    store = stores[_scratch.used]
    if store.numel() < count or store.dtype != like.dtype or store.device != like.device:
        store = stores[_scratch.used] = like.new_empty(count)
    _scratch.used += 1
    return store[:count].view(shape)
