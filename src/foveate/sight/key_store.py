"""Keys (B, ..., S, D) that grow while a model runs step by step: kept once, however often a cache hands them over.

A decoder that attends once for each step has one call for each, over the keys of all steps so far. Each call is
compared with what is kept, so that a cache that is copied, overwritten in place, cropped to a window or reordered by
beam search is never misread: what continues nothing begins a new map.
"""

import mmap
import sys
from contextlib import suppress
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

_LARGE = 2**20
"""Bytes from which on a copy has pages of its own; the kernel lends a process only some 65,000 such mappings."""


@dataclass(eq=False, slots=True)
class Span:
    """The keys of one call among those of its map, counted from the first key that the map ever had."""

    first: int
    length: int
    turn: int
    """How often the rows of the batch had been reordered by then."""


@dataclass(eq=False, slots=True)
class _Turn:
    """A reordering of the batch: the keys since the turn before it, in the old rows, and the old row of each new."""

    start: int
    keys: Float[Tensor, "... N D"]
    parents: Int[Tensor, "B"]


class Keys:
    """The keys of a map, in memory that is linear in their number, reordered or not."""

    def __init__(self, keys: Float[Tensor, "... S D"]) -> None:
        self._store = own(keys)
        self._length = keys.shape[-2]
        self._turns: list[_Turn] = []
        self.grows = False
        """Whether later calls brought keys of their own, as a decoder's do that looks at what it wrote."""

    @property
    def last(self) -> Span:
        """All keys that there are."""
        return Span(0, self._length, len(self._turns))

    def continued(self, keys: Float[Tensor, "... S D"], steps: int, writing: bool = False) -> Span | None:
        """The span of these keys if they belong to a call of the same map, which `steps` more queries made; else None.

        They do if they are the keys of the call before it and the query is one (or the model is known to be `writing`
        just now), or if they are the end of the keys so far with one new key behind for each query; in any order of the
        batch, for a beam search reorders a source's keys too, which differ in their last bits from row to row.
        """
        keys, store = bare(keys), self._store
        if keys.shape[:-2] != store.shape[:-2] or keys.shape[-1] != store.shape[-1] or keys.dtype != store.dtype:
            return None
        total, count = self._length, keys.shape[-2]
        if (steps == 1 or writing) and count == total:
            parents = parent_rows(keys, store[..., :total, :])
            if parents is not None:
                self._turn(parents)
                return self.last
        old = count - steps
        if not 0 < old <= total:
            return None
        parents = parent_rows(keys[..., :old, :], store[..., total - old : total, :])
        if parents is None:
            return None
        self._turn(parents)
        self._append(keys[..., old:, :])
        self.grows = True
        return Span(total - old, count, len(self._turns))

    def at(self, span: Span) -> Float[Tensor, "... S D"]:
        """The keys of a span, each row of the batch as it was then."""
        first, end = span.first, span.first + span.length
        if span.turn == len(self._turns):
            return self._store[..., first:end, :]
        of_its_time = self._turns[span.turn]
        parts = [of_its_time.keys[..., : end - of_its_time.start, :]]
        rows = torch.arange(len(self._store), device=self._store.device)
        for turn in reversed(self._turns[: span.turn]):
            rows = turn.parents[rows]
            parts.append(turn.keys.index_select(0, rows))
        return torch.cat(parts[::-1], -2)[..., first:end, :]

    def _turn(self, parents: Tensor) -> None:
        """Reorder the batch, unless each row goes on from itself."""
        if torch.equal(parents, torch.arange(len(parents), device=parents.device)):
            return
        start = self._turns[-1].start + self._turns[-1].keys.shape[-2] if self._turns else 0
        self._turns.append(_Turn(start, self._store[..., start : self._length, :].clone(), parents))
        self._store = self._store.index_select(0, parents)

    def _append(self, keys: Tensor) -> None:
        total = self._length + keys.shape[-2]
        if total > self._store.shape[-2]:
            roomy = self._store.new_empty(*self._store.shape[:-2], 2 * total, self._store.shape[-1])
            roomy[..., : self._length, :] = self._store[..., : self._length, :]
            self._store = roomy
        self._store[..., self._length : total, :] = keys
        self._length = total


def bare(tensor: Tensor) -> Tensor:
    """A tensor without gradients, and with 1 for each leading dimension that only repeats."""
    tensor = tensor.detach()
    for dimension in range(tensor.ndim - 2):
        if tensor.stride(dimension) == 0 and tensor.shape[dimension] > 1:
            tensor = tensor.narrow(dimension, 0, 1)
    return tensor


def own(tensor: Tensor) -> Tensor:
    """A copy, as small as can be: what the model does with its tensor later does not change it."""
    tensor = bare(tensor)
    if tensor.device.type == "cpu" and tensor.nbytes >= _LARGE:
        return _room(tensor).copy_(tensor)
    return tensor.clone(memory_format=torch.contiguous_format)


def _room(like: Tensor) -> Tensor:
    """Memory for a copy, in pages of its own: no more than it fills, and given back as soon as it is freed.

    The kernel may give 2 MiB at once, which takes a third of the time.
    """
    pages = mmap.mmap(-1, like.nbytes, access=mmap.ACCESS_COPY)
    if sys.platform == "linux":
        with suppress(OSError):  # a kernel may know no large pages
            pages.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(pages, dtype=like.dtype).view(like.shape)


def parent_rows(keys: Tensor, store: Tensor) -> Tensor | None:
    """For each row of the batch a row of the store that equals it, its own before others; None where there is none."""
    rows = torch.arange(len(keys), device=keys.device)
    if torch.equal(keys, store):
        return rows
    if keys.ndim == 2:  # there is no batch
        return None
    alike = (keys[:, None, ..., -1, :] == store[None, ..., -1, :]).flatten(2).all(-1)
    parents = []
    for row in rows.tolist():
        candidates = sorted(alike[row].nonzero().flatten().tolist(), key=lambda candidate: candidate != row)
        parent = next((candidate for candidate in candidates if torch.equal(keys[row], store[candidate])), None)
        if parent is None:
            return None
        parents.append(parent)
    return torch.tensor(parents, device=keys.device)
