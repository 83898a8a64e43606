"""Attention within windows as a map of the whole picture, whose queries and keys are its patches row by row."""

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from foveate.errors import UserError, at_least
from foveate.sight import measures
from foveate.sight.key_measures import CELLS, cells
from foveate.sight.layouts import Windows
from foveate.sight.measures import ALL, Choice, Top, places
from foveate.sight.site import Site


class InPlace(Site):
    """A site of windows, (B*N, H, W, W), put back: (B, H, T, S) with as many queries and keys as there are patches.

    What stands in another window is not looked at. What goes to padding is in no map, though it counts for the entropy.
    Memory is linear in the patches for windows of one size; `weights` takes a few times what it returns.
    """

    windows: tuple[Windows, Windows]

    def __init__(self, site: Site, queries: Windows, keys: Windows) -> None:
        """Raises UserError unless the site's examples are the windows of whole pictures, for both sides the same."""
        super().__init__(site.name, site.keys)
        self.rows, self.errors, self.windows, self._site = site.rows, site.errors, (queries, keys), site
        for side, count in zip(self.windows, site.shape[2:], strict=True):
            side.check(site.shape[0], count)
        if queries.grid != keys.grid:
            raise UserError(
                f"{site.name}: {queries.grid} windows of queries, down and across, are not {keys.grid} of keys"
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
            torch.tensor(places(choice, count), dtype=torch.int64, device=self.device)
            for choice, count in ((queries, row_count), (keys, key_count))
        )
        wanted, order = keys.unique(return_inverse=True)
        rows = self._rows(heads)[:, :, queries]
        column = torch.full((key_count + 1,), len(wanted), device=self.device)  # of all others, and of padding
        column[wanted] = torch.arange(len(wanted), device=self.device)
        found = rows.new_zeros(*rows.shape[:-1], len(wanted) + 1)
        found.scatter_(-1, column[self._keys[queries]].expand(rows.shape), rows)
        return found[..., order]

    def measure(self, *names: str, top: int = 8) -> None:
        """Take "top" and "entropy" at once; of others little is won, and each is taken when it is asked for."""
        taken = {"top", "entropy"}.intersection(measures.check_names(names))
        self._site.measure(*taken, top=top + self.windows[1].padding)

    def top(self, k: int = 8) -> Top:
        at_least(1, "k", k)
        wanted = k + self.windows[1].padding
        if not self._site._known("top", wanted):
            self._queries_needed("top")
        found = self._site.top(wanted)
        keys = self._patch(found.keys)
        weights, order = found.weights.masked_fill(keys < 0, 0).sort(dim=-1, descending=True, stable=True)
        keys = keys.gather(-1, order).masked_fill(weights == 0, -1)
        return Top(self._of_queries(weights.mT).mT[..., :k], self._of_queries(keys.mT).mT[..., :k])

    def entropy(self) -> Float[Tensor, "B H T"]:
        return self._of_queries(self._site.entropy())

    def max(self) -> Float[Tensor, "B H T"]:
        return self.top(1).weights[..., 0] if self.windows[1].padding else self._of_queries(self._site.max())

    def distance(self) -> Float[Tensor, "B H T"]:
        """The mean of how many patches, counted row by row, lie between a query and the keys that it looks at.

        Raises UserError where queries and keys are patches of different sizes.
        """
        if self.shape[2] != self.shape[3]:
            raise UserError(f"{self.name}: its queries are larger patches than its keys, at no distance in either")
        self._queries_needed("distance")
        keys, own = self._keys, torch.arange(self.shape[2], device=self.device)
        rows = self._rows().masked_fill(keys == self.shape[3], 0)
        total = rows.sum(-1)
        return (rows * (keys - own[:, None]).abs()).sum(-1) / total.masked_fill(total == 0, 1)

    def received(self) -> Float[Tensor, "B H S"]:
        if not self.windows[0].padding:
            return self.windows[1].map(self._site.received()).flatten(-2)
        self._queries_needed("received")
        batch, heads, _, key_count = self.shape
        rows = self._rows()
        total = rows.new_zeros(batch, heads, key_count + 1)
        return total.index_add_(-1, self._keys.flatten(), rows.flatten(-2))[..., :-1]

    def carried(self, shares: Float[Tensor, "B N T"]) -> Float[Tensor, "B N S"]:
        over = self.windows[0].patches.to(self.device)
        with_padding = torch.cat([shares, shares.new_zeros(*shares.shape[:2], 1)], -1)
        means = self._site.weights().mean(1).unflatten(0, (-1, len(over)))
        found = torch.einsum("bnwq,bwqk->bnwk", with_padding[..., over], means.to(shares.dtype))
        return self.windows[1].map(found.transpose(1, 2).flatten(0, 1)).flatten(-2)

    def pooled(self, rows: int = CELLS, columns: int = CELLS) -> Float[Tensor, "B H rows columns"]:
        at_least(1, "the number of cells", min(rows, columns))
        self._queries_needed("pooled")
        batch, heads, row_count, key_count = self.shape
        rows, columns = min(rows, row_count), min(columns, key_count)
        over, along = cells(row_count, rows, self.device), cells(key_count, columns, self.device)
        along = torch.cat([along, along.new_full((1,), columns)])  # padding has a column of its own
        cell = over[:, None] * (columns + 1) + along[self._keys]
        weights = self._rows()
        total = weights.new_zeros(batch, heads, rows * (columns + 1))
        total.index_add_(-1, cell.flatten(), weights.flatten(-2))
        return total.unflatten(-1, (rows, columns + 1))[..., :-1] / over.bincount()[:, None]

    def choices(self) -> Int[Tensor, "B H T"]:
        return self._of_queries(self._patch(self._site.choices()[..., None])[..., 0])

    def _queries_needed(self, what: str) -> None:
        super()._queries_needed(f"{what}, put back in place,")

    @property
    def _keys(self) -> Int[Tensor, "T W"]:
        """The patch at each place of the window of each query; for padding the number of patches."""
        over, along = self.windows
        window = over.places // over.patches.shape[1]
        patches = along.patches[window]
        return patches.masked_fill(patches < 0, self.shape[3]).to(self.device)

    def _rows(self, heads: Choice = ALL) -> Float[Tensor, "B H T W"]:
        """The weights of each patch on the places of its window."""
        return self._of_queries(self._site.weights(heads).mT).mT

    def _of_queries(self, found: Shaped[Tensor, "BN *others W"]) -> Shaped[Tensor, "B *others T"]:
        return self.windows[0].map(found).flatten(-2)

    def _patch(self, keys: Int[Tensor, "BN H W k"]) -> Int[Tensor, "BN H W k"]:
        """The patch at a place of a window; -1 for padding, and where there is no such place."""
        patches = self.windows[1].patches.to(keys.device)
        window = torch.arange(len(keys), device=keys.device) % len(patches)
        return patches[window[:, None, None, None], keys.clamp_min(0)].masked_fill(keys < 0, -1)
