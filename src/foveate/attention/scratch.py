"""Scratch memory that blocks of a computation share, instead of allocating it for each block.

The allocator returns large memory to the system. Fresh memory costs a page fault for every 4 KiB at the first write,
which takes as long as the computation itself.
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
    """Inside, `empty` returns the same memory for each block."""
    _scratch.stores, _scratch.used = [], 0
    try:
        yield
    finally:
        _scratch.stores = None


def next_block() -> None:
    """Start the next block: memory from `empty` may be overwritten."""
    _scratch.used = 0


def empty(shape: torch.Size, like: Tensor) -> Tensor:
    """An uninitialised tensor of this shape, with the type and device of `like`."""
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
