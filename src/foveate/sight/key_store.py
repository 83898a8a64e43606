"""Stores the keys (B, ..., S, D) of a cache that grows while a model generates: each key once, for all steps.

A decoder that attends once for each step makes one call for each, over the keys of all steps so far. Each call is
compared with the stored keys, so a cache that is copied, overwritten in place, cropped to a window or reordered by beam
search is never misread: keys that continue nothing begin a new map.
"""

import mmap
import sys
from contextlib import suppress
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

_LARGE = 2**20
"""Copies of this many bytes or more get memory pages of their own; a process may have only some 65,000 mappings."""

_BY_ONE = 2
"""What torch counts for the memory of one tensor: this, and the storage as an object of Python."""


@dataclass(eq=False, slots=True)
class Span:
    """The keys of one call, as positions among all keys that the map ever had."""

    first: int
    length: int
    reorders: int
    """Number of times that the batch had been reordered before the call."""


@dataclass(eq=False, slots=True)
class _Reorder:
    """A reordering of the batch."""

    start: int
    """Position of the first of its keys."""
    keys: Float[Tensor, "... N D"]
    """The keys since the previous reordering, in the old order."""
    parents: Int[Tensor, "B"]
    """The old row of each new row."""


class KeyStore:
    """The keys of a map. Memory is linear in their number, also if the batch is reordered."""

    def __init__(self, keys: Float[Tensor, "... S D"], alone: bool = False) -> None:
        """`alone`: see `keep_tensor`."""
        self._store = keep_tensor(keys, alone)
        self._length = keys.shape[-2]
        self._reorders: list[_Reorder] = []
        self.grows = False
        """Whether later calls added keys, as the self-attention of a decoder does."""

    @property
    def full_span(self) -> Span:
        """The span of all keys."""
        return Span(0, self._length, len(self._reorders))

    def extend(self, keys: Float[Tensor, "... S D"], steps: int, generating: bool = False) -> Span | None:
        """Add the new keys of a call with `steps` queries and return its span; None if it does not continue the map.

        The call continues the map if its keys are those of the previous call and it has one query (or the model is
        known to be `generating`), or if its keys are the last stored keys followed by one new key for each query. The
        rows of the batch may be in any order, since beam search also reorders the keys of a source, whose rows differ
        in their last bits.
        """
        keys, store = collapse(keys), self._store
        if keys.shape[:-2] != store.shape[:-2] or keys.shape[-1] != store.shape[-1] or keys.dtype != store.dtype:
            return None
        total, count = self._length, keys.shape[-2]
        if (steps == 1 or generating) and count == total:
            parents = parent_rows(keys, store[..., :total, :])
            if parents is not None:
                self._reorder(parents)
                return self.full_span
        old = count - steps
        if not 0 < old <= total:
            return None
        parents = parent_rows(keys[..., :old, :], store[..., total - old : total, :])
        if parents is None:
            return None
        self._reorder(parents)
        self._append(keys[..., old:, :])
        self.grows = True
        return Span(total - old, count, len(self._reorders))

    def read(self, span: Span) -> Float[Tensor, "... S D"]:
        """The keys of a span, with the rows of the batch in the order that they had then."""
        first, end = span.first, span.first + span.length
        if span.reorders == len(self._reorders):
            return self._store[..., first:end, :]
        next_reorder = self._reorders[span.reorders]
        parts = [next_reorder.keys[..., : end - next_reorder.start, :]]
        rows = torch.arange(len(self._store), device=self._store.device)
        for reorder in reversed(self._reorders[: span.reorders]):
            rows = reorder.parents[rows]
            parts.append(reorder.keys.index_select(0, rows))
        return torch.cat(parts[::-1], -2)[..., first:end, :]

    def _reorder(self, parents: Tensor) -> None:
        """Reorder the batch, unless each row continues itself."""
        if torch.equal(parents, torch.arange(len(parents), device=parents.device)):
            return
        start = self._reorders[-1].start + self._reorders[-1].keys.shape[-2] if self._reorders else 0
        self._reorders.append(_Reorder(start, self._store[..., start : self._length, :].clone(), parents))
        self._store = self._store.index_select(0, parents)

    def _append(self, keys: Tensor) -> None:
        total = self._length + keys.shape[-2]
        if total > self._store.shape[-2]:
            larger = self._store.new_empty(*self._store.shape[:-2], 2 * total, self._store.shape[-1])
            larger[..., : self._length, :] = self._store[..., : self._length, :]
            self._store = larger
        self._store[..., self._length : total, :] = keys
        self._length = total


def collapse(tensor: Tensor) -> Tensor:
    """The detached tensor with expanded leading dimensions (stride 0) reduced to size 1."""
    tensor = tensor.detach()
    for dimension in range(tensor.ndim - 2):
        if tensor.stride(dimension) == 0 and tensor.shape[dimension] > 1:
            tensor = tensor.narrow(dimension, 0, 1)
    return tensor


def keep_tensor(tensor: Tensor, alone: bool) -> Tensor:
    """A copy as `copy_tensor` makes it, or the tensor itself.

    It is the tensor itself where nobody writes to it, holds it or keeps more memory alive than it has. That nobody does
    the former is what `alone` says. That no other tensor (a view, the one that it is a view of, or one that autograd
    saved) has the same memory is known to torch: fresh memory for a copy takes five times as long as the copy.
    """
    if not alone:
        return copy_tensor(tensor)
    storage = tensor.untyped_storage()
    others = torch._C._storage_Use_Count(storage._cdata) > _BY_ONE
    return copy_tensor(tensor) if others or storage.nbytes() != tensor.nbytes else tensor.detach()


def copy_tensor(tensor: Tensor) -> Tensor:
    """A copy that later writes of the model do not change, without repeated leading dimensions."""
    tensor = collapse(tensor)
    if tensor.device.type == "cpu" and tensor.nbytes >= _LARGE:
        return _allocate(tensor).copy_(tensor)
    return tensor.clone(memory_format=torch.contiguous_format)


def _allocate(like: Tensor) -> Tensor:
    """Memory for a copy in pages of its own, which are returned to the system as soon as they are freed.

    Huge pages (2 MiB) need a third of the time.
    """
    pages = mmap.mmap(-1, like.nbytes, access=mmap.ACCESS_COPY)
    if sys.platform == "linux":
        with suppress(OSError):  # not every kernel supports huge pages
            pages.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(pages, dtype=like.dtype).view(like.shape)


def parent_rows(keys: Tensor, store: Tensor) -> Tensor | None:
    """For each row of the batch an equal row of the store, preferably the same one; None if a row has no equal."""
    rows = torch.arange(len(keys), device=keys.device)
    if torch.equal(keys, store):
        return rows
    if keys.ndim == 2:  # there is no batch
        return None
    same_last_key = (keys[:, None, ..., -1, :] == store[None, ..., -1, :]).flatten(2).all(-1)
    parents = []
    for row in rows.tolist():
        candidates = sorted(same_last_key[row].nonzero().flatten().tolist(), key=lambda candidate: candidate != row)
        parent = next((candidate for candidate in candidates if torch.equal(keys[row], store[candidate])), None)
        if parent is None:
            return None
        parents.append(parent)
    return torch.tensor(parents, device=keys.device)
