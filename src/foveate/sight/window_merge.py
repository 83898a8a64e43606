"""Merges attention within windows into one map of the whole picture, over its patches row by row."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from foveate.errors import UserError, at_least
from foveate.sight import measures
from foveate.sight.key_measures import CELLS, cell_indices, counted_queries
from foveate.sight.layouts import Windows
from foveate.sight.measures import ALL, Choice, Top, resolve_choice
from foveate.sight.site import Site


class MergedWindows(Site):
    """A site of windows, (B*N, H, W, W), as one map (B, H, T, S) whose queries and keys are the patches of the picture.

    Patches of other windows have the weight 0. Padding is in no map, but its weights count for the entropy. Memory is
    linear in the patches for windows of one size; `weights` needs a few times what it returns.
    """

    windows: tuple[Windows, Windows]

    def __init__(self, site: Site, queries: Windows, keys: Windows) -> None:
        """Raises UserError unless the site's examples are the windows of whole pictures, the same for both sides."""
        super().__init__(site.name, site.keys)
        self.calls, self.errors, self.windows, self._site = site.calls, site.errors, (queries, keys), site
        self.shows = site.shows
        for side, count in zip(self.windows, site.shape[2:], strict=True):
            side.check(site.shape[0], count)
        if queries.grid != keys.grid:
            raise UserError(
                f"{site.name}: the queries have {queries.grid} windows, down and across, but the keys have {keys.grid}"
            )

    @property
    def count(self) -> int:
        return self.windows[0].height * self.windows[0].width

    @property
    def shape(self) -> tuple[int, int, int, int]:
        examples, heads, *_ = self._site.shape
        along = self.windows[1]
        return examples // len(along.patches), heads, self.count, along.height * along.width

    def weights(self, heads: Choice = ALL, queries: Choice = ALL, keys: Choice = ALL) -> Float[Tensor, "B H T S"]:
        _, _, row_count, key_count = self.shape
        queries, keys = (
            torch.tensor(resolve_choice(choice, count), dtype=torch.int64, device=self.device)
            for choice, count in ((queries, row_count), (keys, key_count))
        )
        wanted, order = keys.unique(return_inverse=True)
        rows = self._rows(heads)[:, :, queries]
        column = torch.full((key_count + 1,), len(wanted), device=self.device)  # other keys and padding share a column
        column[wanted] = torch.arange(len(wanted), device=self.device)
        result = rows.new_zeros(*rows.shape[:-1], len(wanted) + 1)
        result.scatter_(-1, column[self._keys[queries]].expand(rows.shape), rows)
        return result[..., order]

    def measure(self, *names: str, top: int = 8) -> None:
        """Compute "top" and "entropy" at once. Other measures would share little and are computed when asked for."""
        shared = {"top", "entropy"}.intersection(measures.check_names(names))
        self._site.measure(*shared, top=top + self.windows[1].padding)

    def top(self, k: int = 8) -> Top:
        at_least(1, "k", k)
        wanted = k + self.windows[1].padding
        if not self._site._is_measured("top", wanted):
            self._require_queries("top")
        top = self._site.top(wanted)
        keys = self._to_patches(top.keys)
        weights, order = top.weights.masked_fill(keys < 0, 0).sort(dim=-1, descending=True, stable=True)
        keys = keys.gather(-1, order).masked_fill(weights == 0, -1)
        return Top(self._merge(weights.mT).mT[..., :k], self._merge(keys.mT).mT[..., :k])

    def entropy(self) -> Float[Tensor, "B H T"]:
        return self._merge(self._site.entropy())

    def max(self) -> Float[Tensor, "B H T"]:
        return self.top(1).weights[..., 0] if self.windows[1].padding else self._merge(self._site.max())

    def distance(self) -> Float[Tensor, "B H T"]:
        """The mean distance between a query and its keys in patches, counted row by row, weighted by attention.

        Raises UserError if queries and keys are patches of different sizes.
        """
        if self.shape[2] != self.shape[3]:
            raise UserError(f"{self.name}: queries and keys are patches of different sizes, so there is no distance")
        self._require_queries("distance")
        keys, queries = self._keys, torch.arange(self.shape[2], device=self.device)
        rows = self._rows().masked_fill(keys == self.shape[3], 0)
        total = rows.sum(-1)
        return (rows * (keys - queries[:, None]).abs()).sum(-1) / total.masked_fill(total == 0, 1)

    def received(self, queries: Tensor | Sequence[Any] | None = None) -> Float[Tensor, "B H S"]:
        if queries is None and not self.windows[0].padding:
            return self.windows[1].map(self._site.received()).flatten(-2)
        self._require_queries("received")
        batch, heads, row_count, key_count = self.shape
        rows = self._rows()
        if queries is not None:
            rows = rows * counted_queries(queries, batch, row_count, self.device)[:, None, :, None]
        total = rows.new_zeros(batch, heads, key_count + 1)
        return total.index_add_(-1, self._keys.flatten(), rows.flatten(-2))[..., :-1]

    def propagate(self, shares: Float[Tensor, "B N T"]) -> Float[Tensor, "B N S"]:
        over = self.windows[0].patches.to(self.device)
        with_padding = torch.cat([shares, shares.new_zeros(*shares.shape[:2], 1)], -1)
        means = self._site.weights().mean(1).unflatten(0, (-1, len(over)))
        result = torch.einsum("bnwq,bwqk->bnwk", with_padding[..., over], means.to(shares.dtype))
        return self.windows[1].map(result.transpose(1, 2).flatten(0, 1)).flatten(-2)

    def pooled(self, rows: int = CELLS, columns: int = CELLS) -> Float[Tensor, "B H rows columns"]:
        at_least(1, "the number of cells", min(rows, columns))
        self._require_queries("pooled")
        batch, heads, row_count, key_count = self.shape
        rows, columns = min(rows, row_count), min(columns, key_count)
        over, along = cell_indices(row_count, rows, self.device), cell_indices(key_count, columns, self.device)
        along = torch.cat([along, along.new_full((1,), columns)])  # padding has a column of its own
        cell = over[:, None] * (columns + 1) + along[self._keys]
        weights = self._rows()
        total = weights.new_zeros(batch, heads, rows * (columns + 1))
        total.index_add_(-1, cell.flatten(), weights.flatten(-2))
        return total.unflatten(-1, (rows, columns + 1))[..., :-1] / over.bincount()[:, None]

    def choices(self) -> Int[Tensor, "B H T"]:
        return self._merge(self._to_patches(self._site.choices()[..., None])[..., 0])

    def _require_queries(self, what: str) -> None:
        super()._require_queries(f"{what} of merged windows")

    @property
    def _keys(self) -> Int[Tensor, "T W"]:
        """The patch at each position of each query's window; the number of patches for padding."""
        over, along = self.windows
        window = over.positions // over.patches.shape[1]
        patches = along.patches[window]
        return patches.masked_fill(patches < 0, self.shape[3]).to(self.device)

    def _rows(self, heads: Choice = ALL) -> Float[Tensor, "B H T W"]:
        """The weights of each patch on the positions of its window."""
        return self._merge(self._site.weights(heads).mT).mT

    def _merge(self, values: Shaped[Tensor, "BN *others W"]) -> Shaped[Tensor, "B *others T"]:
        """Values for the queries of each window as values for the patches of each picture."""
        return self.windows[0].map(values).flatten(-2)

    def _to_patches(self, keys: Int[Tensor, "BN H W k"]) -> Int[Tensor, "BN H W k"]:
        """The patches at positions of the windows; -1 for padding and for -1."""
        patches = self.windows[1].patches.to(keys.device)
        window = torch.arange(len(keys), device=keys.device) % len(patches)
        return patches[window[:, None, None, None], keys.clamp_min(0)].masked_fill(keys < 0, -1)
