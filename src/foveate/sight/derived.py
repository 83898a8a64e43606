"""A site whose map is computed from that of another: a part of it, or its weights times something."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.attention.call import Call
from foveate.attention.points import Grids
from foveate.errors import UserError, at_least
from foveate.sight import measures
from foveate.sight.key_measures import CELLS, cell_indices, counted_queries
from foveate.sight.measures import ALL, Choice, Top, check_names, resolve_choice
from foveate.sight.points import SamplingPoints
from foveate.sight.recorded_call import RecordedCall
from foveate.sight.site import Site


class DerivedSite(Site):
    """Measures of a map that only `weights` knows, some rows at a time: memory is linear in the length.

    Rows need not sum to 1. Entropies and distances are those of the weights divided by their sum.
    """

    def __init__(self, name: str, of: Site) -> None:
        super().__init__(name, of.keys)
        self.calls, self.errors, self._site = of.calls, of.errors, of
        self.shows = type(self).shows if type(self).shows != "weights" else of.shows

    @property
    def has_sinks(self) -> bool:
        return self._site.has_sinks

    @property
    def maps(self) -> Grids | None:
        return self._site.maps

    @property
    def grids(self) -> Grids | None:
        """None: only a site with the same keys has the same places."""
        return None

    @property
    def run(self) -> int:
        return self._site.run

    @property
    def device(self) -> torch.device:
        return self._site.device

    @property
    def dtype(self) -> torch.dtype:
        return self._site.dtype

    def measure(self, *names: str, top: int = 8) -> None:
        """Measures are computed when they are asked for."""
        check_names(names)

    def top(self, k: int = 8) -> Top:
        at_least(1, "k", k)
        count = min(k, self.shape[3])
        found = [block.topk(count, -1) for block in self._blocks()]
        weights = torch.cat([part.values for part in found], 2)
        keys = torch.cat([part.indices for part in found], 2)
        missing = (0, k - count)
        pad = torch.nn.functional.pad
        return Top(pad(weights, missing), pad(keys.masked_fill(weights == 0, -1), missing, value=-1))

    def entropy(self) -> Float[Tensor, "B H T"]:
        found = []
        for block in self._blocks():
            shares = block / block.sum(-1, keepdim=True).clamp_min(torch.finfo(block.dtype).tiny)
            found.append(-torch.special.xlogy(shares, shares).sum(-1))
        return torch.cat(found, -1)

    def largest_score(self) -> Float[Tensor, "B H T"]:
        """Raises UserError: what is derived from weights has no scores."""
        raise UserError(f"{self.name} has no scores: ask the site that it is made of")

    def max(self) -> Float[Tensor, "B H T"]:
        return torch.cat([block.amax(-1) for block in self._blocks()], -1)

    def distance(self) -> Float[Tensor, "B H T"]:
        columns, found, first = torch.arange(self.shape[3], device=self.device), [], 0
        for block in self._blocks():
            rows = torch.arange(first, first + block.shape[-2], device=self.device)
            apart = (rows[:, None] - columns).abs().to(block.dtype)
            total = block.sum(-1)
            found.append((block * apart).sum(-1) / total.masked_fill(total == 0, 1.0))
            first += block.shape[-2]
        return torch.cat(found, -1)

    def received(self, queries: Tensor | Sequence[Any] | None = None) -> Float[Tensor, "B H S"]:
        if queries is None:
            return torch.stack([block.sum(-2) for block in self._blocks()]).sum(0)
        examples, _, rows, _ = self.shape
        shares = counted_queries(queries, examples, rows, self.device)[:, None, None]
        parts = zip(shares.split(self.rows_at_once, -1), self._blocks(), strict=True)
        return torch.stack([(share.to(block.dtype) @ block).squeeze(-2) for share, block in parts]).sum(0)

    @property
    def has_points(self) -> bool:
        return False

    def points(self, heads: Choice = ALL, queries: Choice = ALL) -> SamplingPoints:
        """Raises UserError: what is derived from weights has no points of its own."""
        raise UserError(f"{self.name} has no points: ask the site that it is made of")

    def propagate(self, shares: Float[Tensor, "B N T"]) -> Float[Tensor, "B N S"]:
        total, first = shares.new_zeros(*shares.shape[:2], self.shape[3]), 0
        for block in self._blocks():
            total += shares[..., first : first + block.shape[-2]] @ block.mean(1).to(shares.dtype)
            first += block.shape[-2]
        return total

    def pooled(self, rows: int = CELLS, columns: int = CELLS) -> Float[Tensor, "B H rows columns"]:
        at_least(1, "the number of cells", min(rows, columns))
        batch, heads, row_count, key_count = self.shape
        rows, columns = min(rows, row_count), min(columns, key_count)
        over, along = cell_indices(row_count, rows, self.device), cell_indices(key_count, columns, self.device)
        total, first = self._zeros(batch, heads, rows, columns), 0
        for block in self._blocks():
            summed = block.new_zeros(*block.shape[:-1], columns).index_add_(-1, along, block)
            total.index_add_(-2, over[first : first + block.shape[-2]], summed)
            first += block.shape[-2]
        return total / over.bincount()[:, None]

    def _blocks(self) -> Iterator[Float[Tensor, "B H t S"]]:
        """All weights, some rows at a time."""
        height = self.rows_at_once
        for start in range(0, self.shape[2], height):
            yield self.weights(queries=slice(start, start + height))


class FactoredSite(DerivedSite):
    """The weights of a site, each times a factor."""

    def __init__(self, site: Site) -> None:
        """Raises UserError for a site that is derived itself."""
        if isinstance(site, DerivedSite) or site.windows is not None or not site.calls:
            raise UserError(f"{site.name} is no map as it was recorded: ask for this before parts or windows")
        super().__init__(site.name, site)

    @property
    def grids(self) -> Grids | None:
        return self._site.grids

    @abstractmethod
    def factor(
        self, recorded: RecordedCall, heads: Sequence[int], queries: Sequence[int], keys: Sequence[int]
    ) -> Float[Tensor, "B h t s"]:
        """What the weights of some heads, queries and keys of a call are multiplied with; sizes of 1 are repeated."""

    def _weights_of(
        self, recorded: RecordedCall, call: Call, heads: Choice, queries: Choice, keys: Choice
    ) -> Float[Tensor, "B H t s"]:
        chosen = (
            resolve_choice(heads, call.leading[1:].numel()),
            resolve_choice(queries, call.queries.shape[-2]),
            resolve_choice(keys, call.keys.shape[-2]),
        )
        return measures.weights(call, *chosen).mul_(self.factor(recorded, *chosen))
