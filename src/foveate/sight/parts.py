"""Cuts the map of a joint sequence, such as text and image, into a map for each pair of its parts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.errors import UserError, at_least
from foveate.sight.key_measures import CELLS, cell_indices, counted_queries
from foveate.sight.measures import ALL, Choice, Top, check_names, resolve_choice
from foveate.sight.site import BLOCK, Site

Parts = Mapping[str, int]
"""The parts of a sequence in their order, each with its number of positions: {"text": 77, "image": 4096}."""


class SitePart(Site):
    """The queries of one part and the keys of another: a block of the map of a joint sequence.

    The weights are those of the whole map, so that a row sums to the share of its attention that goes to these keys.
    Entropies are those of the weights within the part, divided by their sum.
    """

    def __init__(self, site: Site, name: str, queries: range, keys: range) -> None:
        super().__init__(name, site.keys)
        self.calls, self.errors = site.calls, site.errors
        self._site, self._rows, self._columns = site, queries, keys

    @property
    def count(self) -> int:
        return len(self._rows)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        examples, heads, *_ = self._site.shape
        return examples, heads, len(self._rows), len(self._columns)

    def weights(self, heads: Choice = ALL, queries: Choice = ALL, keys: Choice = ALL) -> Float[Tensor, "B H T S"]:
        rows = [self._rows[place] for place in resolve_choice(queries, len(self._rows))]
        columns = [self._columns[place] for place in resolve_choice(keys, len(self._columns))]
        return self._site.weights(heads, rows, columns)

    def measure(self, *names: str, top: int = 8) -> None:
        """Measures of a part are computed when they are asked for."""
        check_names(names)

    def top(self, k: int = 8) -> Top:
        at_least(1, "k", k)
        count = min(k, len(self._columns))
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

    def max(self) -> Float[Tensor, "B H T"]:
        return torch.cat([block.amax(-1) for block in self._blocks()], -1)

    def distance(self) -> Float[Tensor, "B H T"]:
        """Raises UserError: positions of different parts have no distance."""
        raise UserError(f"{self.name} is a part of a joint sequence, whose positions have no common distance")

    def received(self, queries: Tensor | Sequence[Any] | None = None) -> Float[Tensor, "B H S"]:
        if queries is None:
            return torch.stack([block.sum(-2) for block in self._blocks()]).sum(0)
        examples, _, rows, _ = self.shape
        shares = counted_queries(queries, examples, rows, self.device)[:, None, None]
        parts = zip(shares.split(self._height(), -1), self._blocks(), strict=True)
        return torch.stack([(share.to(block.dtype) @ block).squeeze(-2) for share, block in parts]).sum(0)

    def share(self) -> Float[Tensor, "B H T"]:
        """Computes how much of each query's attention goes to the keys of this part."""
        return torch.cat([block.sum(-1) for block in self._blocks()], -1)

    def propagate(self, shares: Float[Tensor, "B N T"]) -> Float[Tensor, "B N S"]:
        return shares @ self.weights().mean(1).to(shares.dtype)

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

    def choices(self) -> Int[Tensor, "B H T"]:
        chosen = self._site.choices()[..., list(self._rows)] - self._columns.start
        return chosen.masked_fill((chosen < 0) | (chosen >= len(self._columns)), -1)

    def _height(self) -> int:
        """Number of rows of a block."""
        examples, heads, _, key_count = self.shape
        return max(1, BLOCK // (examples * heads * key_count))

    def _blocks(self) -> Iterator[Float[Tensor, "B H t S"]]:
        """All weights, some rows at a time."""
        height = self._height()
        for start in range(0, len(self._rows), height):
            yield self.weights(queries=slice(start, start + height))


def cut(site: Site, queries: Parts, keys: Parts) -> dict[str, Site]:
    """A site for each part of the queries and each part of the keys: "attn.image-text" has rows of the image, which
    attend to the text. Raises UserError if the parts are shorter or longer than the map."""
    for parts, count, which in zip((queries, keys), site.shape[2:], ("queries", "keys"), strict=True):
        if sum(parts.values()) != count:
            given = ", ".join(f"{length} of {name}" for name, length in parts.items())
            raise UserError(f"{site.name} has {count} {which}, but its parts are {given}")
    found: dict[str, Site] = {}
    for row, rows in _spans(queries).items():
        for column, columns in _spans(keys).items():
            name = f"{site.name}.{row}-{column}"
            found[name] = SitePart(site, name, rows, columns)
    return found


def _spans(parts: Parts) -> dict[str, range]:
    found, start = {}, 0
    for name, length in parts.items():
        if length:
            found[name] = range(start, start + length)
        start += length
    return found
