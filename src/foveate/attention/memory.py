"""Keys and values that several calls attend to: an encoded source, or a cache that grows by a token at each step."""

import copy
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from foveate.accelerator import is_accelerator
from foveate.attention.scores import Score

CACHED = 2**17
"""Numbers that are copied at once: few enough for a processor's cache."""

SPARE = 2
"""A cache has room for 1 / SPARE more rows, so that a beam search with a growing number of rows seldom copies all."""

MORE = 32
"""Keys that there is room for, at least, when a cache is copied as rows join it."""


def assign_rows(rows: Int[Tensor, "R"]) -> Int[Tensor, "R"]:
    """New positions, 0 to R - 1, of R rows that a memory keeps, so that few rows have to be copied.

    `rows` are their old positions. The first row from an old position below R stays there; the others fill the gaps.
    If fewer than half would stay, as at the first step of a beam search, rows keep the given order.
    """
    ordered, order = rows.sort(stable=True)
    first = torch.ones_like(rows, dtype=torch.bool)
    first[order[1:]] = ordered[1:] != ordered[:-1]
    stays = first & (rows < len(rows))
    if 2 * int(stays.sum()) < len(rows):
        return torch.arange(len(rows), device=rows.device)
    free = torch.ones_like(stays).index_fill_(0, rows[stays], False)
    return rows.masked_scatter(~stays, free.nonzero()[:, 0])


@runtime_checkable
class RowGroups(Protocol):
    """Says which rows of queries share a row of a memory, as the beams of a source do."""

    def gather(self, x: Shaped[Tensor, "R T C"]) -> Shaped[Tensor, "E N C"]:
        """Queries of all rows as queries for each row of the memory."""

    def scatter(self, y: Shaped[Tensor, "E N C"]) -> Shaped[Tensor, "R T C"]:
        """The inverse of `gather`, for what attention found."""

    def select(self, rows: Int[Tensor, "Q"]) -> tuple["RowGroups", Int[Tensor, "K"] | None]:
        """The groups of these rows, in this order, and the old positions of the memory's rows that are left; None if
        all are."""


class Memory:
    """Keys, prepared once by the score, and their values. The leading dimension is the batch (or the beams).

    `keys` (..., S, P) and `values` (..., S, V) are views, valid until rows are reordered. Do not write into them.
    """

    can_crop = True
    """Whether its last keys can be taken back."""

    groups: RowGroups | None = None
    """Which rows of queries share a row of this memory; None where each has its own."""

    projected = False
    """Whether the layer that attends to this memory has projected the keys, and projects its queries (see `Call`)."""

    def __init__(
        self, k: Float[Tensor, "... S D"], v: Float[Tensor, "... S V"], score: Score, expected: int = 0
    ) -> None:
        """`expected` is the final number of keys, if known: memory for all is allocated at once."""
        if k.shape[-2] != v.shape[-2]:
            raise unequal_lengths(k, v)
        self.score = score
        self._keys, self._values = _Store(score.keys(k), expected), _Store(v, expected)

    @property
    def length(self) -> int:
        return self._keys.length

    @property
    def keys(self) -> Float[Tensor, "... S P"]:
        return self._keys.filled

    @property
    def values(self) -> Float[Tensor, "... S V"]:
        return self._values.filled

    def append(self, k: Float[Tensor, "... S D"], v: Float[Tensor, "... S V"]) -> None:
        """Append keys and values."""
        if k.shape[-2] != v.shape[-2]:
            raise unequal_lengths(k, v)
        self._keys.append(self.score.keys(k))
        self._values.append(v)

    def gather(self, queries: Shaped[Tensor, "R T C"]) -> Shaped[Tensor, "E N C"]:
        """The queries of all rows as queries for each row of the memory."""
        return queries if self.groups is None else self.groups.gather(queries)

    def scatter(self, output: Shaped[Tensor, "E N C"]) -> Shaped[Tensor, "R T C"]:
        """The inverse of `gather`, for the output of attention."""
        return output if self.groups is None else self.groups.scatter(output)

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        """Keep these rows of the batch, in this order. A row may be repeated or left out, as in beam search."""
        if self.keys.ndim < 3 or self.values.ndim < 3:
            raise ValueError(f"a memory of keys {tuple(self.keys.shape)} has no batch whose rows could be reordered")
        places = torch.arange(len(rows), device=rows.device)
        # An accelerator copies all rows sooner than it says which ones differ.
        moved = places if is_accelerator(rows.device) else (rows != places).nonzero()[:, 0]
        self._keys.reorder(rows, moved)
        self._values.reorder(rows, moved)

    def repeated(self, rows: int) -> "Memory":
        """Returns a memory that repeats the only row of this one `rows` times and grows on its own."""
        if len(self.keys) != 1:
            raise ValueError(f"only a memory of one row can be repeated, not one of {len(self.keys)}")
        found = copy.copy(self)
        found._keys, found._values = self._keys.repeated(rows), self._values.repeated(rows)
        return found

    def join(self, other: "Memory") -> None:
        """Append the rows of another memory. The last keys of both stand at the same place; before the first ones of
        the shorter memory there are zeros."""
        self._keys.join(other._keys)
        self._values.join(other._values)

    def drop_first(self, count: int) -> None:
        """Forget the first `count` keys of all rows."""
        self._keys.drop_first(count)
        self._values.drop_first(count)

    def crop(self, length: int, reuse: bool = False) -> None:
        """Keep only the first `length` keys. With `reuse`, later ones are written over those that are dropped: where
        nobody reads what `keys` and `values` were before."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot crop a memory of {self.length} keys to {length}")
        if length < self.length:
            self._keys.crop(length, reuse)
            self._values.crop(length, reuse)


def unequal_lengths(k: Tensor, v: Tensor) -> ValueError:
    """The error for keys and values that differ in number."""
    return ValueError(
        f"{k.shape[-2]} keys {tuple(k.shape)} but {v.shape[-2]} values {tuple(v.shape)}: each key needs a value"
    )


class _Store:
    """Vectors (..., S, D), with room for later ones if no gradients are kept.

    It writes only into memory of its own, never into a caller's. If vectors are appended, memory is laid out by time,
    (S, ..., D), so that the part in use is contiguous. Otherwise the caller's layout stays.
    """

    def __init__(self, vectors: Tensor, expected: int) -> None:
        self.length, self.expected = vectors.shape[-2], expected
        self._grows = expected > 0
        self._hold(vectors, own=False)

    def _hold(self, vectors: Tensor, own: bool) -> None:
        self._all, self._own, self._rows = vectors, own, slice(None)

    @property
    def filled(self) -> Tensor:
        if not self._own:  # and so all of it
            return self._all
        return self._all[self._rows, ..., : self.length, :] if self._all.ndim > 2 else self._all[: self.length]

    def repeated(self, rows: int) -> "_Store":
        """This many rows like the only one; they are copied when more is appended."""
        return _Store(self.filled.expand(rows, *self.filled.shape[1:]), 0)

    def append(self, new: Tensor) -> None:
        total = self.length + new.shape[-2]
        if torch.is_grad_enabled() or torch.compiler.is_exporting():  # neither can follow what is written in place
            self._hold(torch.cat([self.filled, new], -2), own=False)
            self.length = total
        else:
            if total > self._all.shape[-2]:
                self._keep(self.filled.movedim(-2, 0), self.expected if total <= self.expected else 2 * total)
            before, self.length = self.length, total
            self.filled[..., before:, :] = new

    def _keep(self, by_time: Tensor, length: int, spare: int = 0) -> None:
        """Copy vectors (S, ..., D) into memory for `length` keys and `spare` more rows."""
        self._grows = True
        rows, room = by_time.shape[1], by_time.new_empty(length, by_time.shape[1] + spare, *by_time.shape[2:])
        room[: self.length, :rows] = by_time
        self._hold(room.movedim(0, -2), own=True)
        if spare:
            self._rows = slice(rows)

    def reorder(self, rows: Tensor, moved: Tensor) -> None:
        """Keep these rows. `moved` are the positions whose row changes."""
        anew = torch.is_grad_enabled() or not self._own or len(rows) > len(self._all)
        if self._grows:
            self._reorder_by_time(rows, moved, anew)
        else:
            self._reorder_by_row(rows, moved, anew)

    def _reorder_by_row(self, rows: Tensor, moved: Tensor, anew: bool) -> None:
        across = self._all.mT.is_contiguous()  # a contiguous copy is the fastest
        lying = self._all.mT if across else self._all
        if anew:
            chosen = lying.index_select(0, rows)
            self._hold(chosen.mT if across else chosen, own=not torch.is_grad_enabled())
        else:
            lying.index_copy_(0, moved, lying.index_select(0, rows[moved]))
            self._rows = slice(len(rows))

    def _reorder_by_time(self, rows: Tensor, moved: Tensor, anew: bool) -> None:
        if anew:
            chosen = self.filled.movedim(-2, 0).index_select(1, rows)
            self._hold(chosen.movedim(0, -2), own=not torch.is_grad_enabled())
            if 0 < self.length < self.expected and self._own:
                self._keep(chosen, self.expected, len(rows) // SPARE)
        else:
            # All rows, also unused ones: torch would copy a tensor that is not dense as a whole.
            by_time = self._all.movedim(-2, 0)[: self.length]
            came_from = rows[moved]
            for part in by_time.split(max(1, CACHED // max(1, by_time[:1, :1].numel() * len(moved)))):
                part.index_copy_(1, moved, part.index_select(1, came_from))
            self._rows = slice(len(rows))

    def join(self, other: "_Store") -> None:
        before, length = len(self.filled), max(self.length, other.length)
        rows = before + len(other.filled)
        if not (self._own and self._grows) or rows > len(self._all) or length > self.length:
            by_time = self.filled.movedim(-2, 0)
            room = by_time.new_zeros(length + max(MORE, length // 4), rows + rows // SPARE, *by_time.shape[2:])
            room[length - self.length : length, :before] = by_time
            self._hold(room.movedim(0, -2), own=True)
            self._grows, self.length = True, length
        self._rows = slice(rows)
        added = self._all.movedim(-2, 0)[:length, before:rows]
        added[: length - other.length] = 0
        added[length - other.length :] = other.filled.movedim(-2, 0)

    def drop_first(self, count: int) -> None:
        if self._own and self._grows:  # a view of what is laid out by time needs no copy
            self._all = self._all[..., count:, :]
        else:
            self._hold(self.filled[..., count:, :], own=False)
        self.length -= count

    def crop(self, length: int, reuse: bool) -> None:
        if not (reuse and self._own):
            # No longer owned: later keys must not overwrite what a caller or a recording may still read.
            self._hold(self.filled[..., :length, :], own=False)
        self.length = length
