"""Rows that share sources: the beams of one sentence attend to the same keys and values."""

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from foveate.attention import assign_rows


class BeamSources:
    """Maps each of R rows (beams) to one of E sources.

    Beams are grouped by source, so keys and values are stored once per source. Groups are padded to the size W of the
    largest one by repeating their first beam. The groups are made on the CPU, where a search has its rows: their sizes
    are numbers that the CPU needs.
    """

    def __init__(self, sources: Int[Tensor, "R"], device: torch.device | None = None) -> None:
        """`sources` contains every number from 0 to E - 1, in any order. `device` is that of what is grouped; None for
        that of the sources."""
        self._device = device or sources.device
        self.sources = sources = sources.cpu()
        counts = sources.bincount()
        order = sources.argsort(stable=True)
        first = counts.cumsum(0) - counts
        self.shape = len(counts), int(counts.max())
        rows = torch.arange(len(sources))
        slots = torch.empty_like(rows)
        slots[order] = rows - first[sources[order]] + sources[order] * self.shape[1]
        padded = order[first].repeat_interleave(self.shape[1]).index_copy(0, slots, rows)
        self._in_order = torch.equal(padded, rows)
        self._slots, self._padded = slots.to(self._device), padded.to(self._device)

    def select(self, rows: Int[Tensor, "Q"]) -> tuple["BeamSources", Int[Tensor, "K"] | None]:
        """The map for these rows, in this order, and the old positions of the sources that are left; None for all.

        Sources without a row are removed. The last sources fill their positions.
        """
        sources = self.sources[rows.cpu()]
        left, numbers = sources.unique(return_inverse=True)
        if len(left) == self.shape[0]:
            return BeamSources(sources, self._device), None
        new = assign_rows(left)
        return BeamSources(new[numbers], self._device), torch.empty_like(left).index_copy_(0, new, left)

    def gather(self, x: Shaped[Tensor, "R T C"]) -> Shaped[Tensor, "E N C"]:
        """Group rows by source: (R, T, C) to (E, W T, C)."""
        grouped = x if self._in_order else x.index_select(0, self._padded)
        return grouped.reshape(self.shape[0], -1, x.shape[-1])

    def scatter(self, y: Shaped[Tensor, "E N C"]) -> Shaped[Tensor, "R T C"]:
        """The inverse of `gather`: results of groups as rows, without padding."""
        slots = y.reshape(self.shape[0] * self.shape[1], -1, y.shape[-1])
        return slots if self._in_order else slots.index_select(0, self._slots)
