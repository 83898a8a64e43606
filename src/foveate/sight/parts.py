"""Cuts the map of a joint sequence, such as text and image, into a map for each pair of its parts."""

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.errors import UserError
from foveate.sight.derived import DerivedSite
from foveate.sight.measures import ALL, Choice, resolve_choice
from foveate.sight.site import Site

Parts = Mapping[str, int]
"""The parts of a sequence in their order, each with its number of positions: {"text": 77, "image": 4096}."""


class SitePart(DerivedSite):
    """The queries of one part and the keys of another: a block of the map of a joint sequence.

    The weights are those of the whole map, so that a row sums to the share of its attention that goes to these keys.
    Entropies are those of the weights within the part, divided by their sum.
    """

    def __init__(self, site: Site, name: str, queries: range, keys: range) -> None:
        super().__init__(name, site)
        self._rows, self._columns = queries, keys

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

    def distance(self) -> Float[Tensor, "B H T"]:
        """Raises UserError: positions of different parts have no distance."""
        raise UserError(f"{self.name} is a part of a joint sequence, whose positions have no common distance")

    def share(self) -> Float[Tensor, "B H T"]:
        """Computes how much of each query's attention goes to the keys of this part."""
        return torch.cat([block.sum(-1) for block in self._blocks()], -1)

    def choices(self) -> Int[Tensor, "B H T"]:
        chosen = self._site.choices()[..., list(self._rows)] - self._columns.start
        return chosen.masked_fill((chosen < 0) | (chosen >= len(self._columns)), -1)


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
