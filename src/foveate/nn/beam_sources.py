"""Rows that read the same sources: what the beams of one sentence share, and any number of them."""

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from foveate.attention import assign_rows


class BeamSources:
    """Which of E sources each of R rows reads.

    Attention to the sources takes place at a table with W seats for each of them, as many as the most popular one has
    readers, so that its keys and values are there once for all who read them. At an empty seat sits the first reader of
    the same source once more.
    """

    def __init__(self, sources: Int[Tensor, "R"]) -> None:
        """`sources` has all numbers from 0 to E - 1, in any order."""
        self.sources = sources
        counts = sources.bincount()
        order = sources.argsort(stable=True)
        first = counts.cumsum(0) - counts
        self.shape = len(counts), int(counts.max())
        rows = torch.arange(len(sources), device=sources.device)
        self._seats = torch.empty_like(rows)
        self._seats[order] = rows - first[sources[order]] + sources[order] * self.shape[1]
        self._seated = order[first].repeat_interleave(self.shape[1]).index_copy(0, self._seats, rows)
        self._in_order = torch.equal(self._seated, rows)

    def select(self, rows: Int[Tensor, "Q"]) -> tuple["BeamSources", Int[Tensor, "K"] | None]:
        """The readers once only these rows are left, in this order, and which sources are still read; None for all.

        Sources that are no longer read leave, and the last ones take their places.
        """
        sources = self.sources[rows]
        left, numbers = sources.unique(return_inverse=True)
        if len(left) == self.shape[0]:
            return BeamSources(sources), None
        new = assign_rows(left)
        return BeamSources(new[numbers]), torch.empty_like(left).index_copy_(0, new, left)

    def gather(self, x: Shaped[Tensor, "R T C"]) -> Shaped[Tensor, "E N C"]:
        """What each row asks, side by side for each source."""
        seated = x if self._in_order else x.index_select(0, self._seated)
        return seated.reshape(self.shape[0], -1, x.shape[-1])

    def scatter(self, y: Shaped[Tensor, "E N C"]) -> Shaped[Tensor, "R T C"]:
        """What each row was answered, in the rows' own order."""
        seats = y.reshape(self.shape[0] * self.shape[1], -1, y.shape[-1])
        return seats if self._in_order else seats.index_select(0, self._seats)
