"""Cuts the map of a joint sequence, such as text and image, into a map for each pair of its parts."""

from collections.abc import Iterable, Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.errors import MOST, UserError, of_kind, whole_number
from foveate.sight.derived import DerivedSite
from foveate.sight.measures import ALL, Choice, resolve_choice
from foveate.sight.site import Site

Parts = Mapping[str, int | Sequence[int]]
"""The parts of a sequence: in their order, each with its number of positions, {"text": 77, "image": 4096}, or each with
its positions, in the order that they are shown in, {"image": (5, 6, 7)}. Of these, some may be left out."""


class SitePart(DerivedSite):
    """The queries of one part and the keys of another: a block of the map of a joint sequence.

    The weights are those of the whole map, so that a row sums to the share of its attention that goes to these keys.
    Entropies are those of the weights within the part, divided by their sum.
    """

    def __init__(self, site: Site, name: str, queries: Sequence[int], keys: Sequence[int]) -> None:
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
        chosen = self._site.choices()[..., list(self._rows)]
        places = chosen.new_full((self._site.shape[3] + 1,), -1)  # the last is that of a query that chose nothing
        places[list(self._columns)] = torch.arange(len(self._columns), device=places.device)
        return places[chosen]


def cut(site: Site, queries: Parts, keys: Parts) -> dict[str, Site]:
    """A site for each part of the queries and each part of the keys: "attn.image-text" has rows of the image, which
    attend to the text. Raises UserError if the parts are shorter or longer than the map, or have positions that it has
    not."""
    over, along = (
        _positions(parts, site.name, count, which)
        for parts, count, which in zip((queries, keys), site.shape[2:], ("queries", "keys"), strict=True)
    )
    return {
        (name := f"{site.name}.{row}-{column}"): SitePart(site, name, rows, columns)
        for row, rows in over.items()
        for column, columns in along.items()
    }


def _positions(parts: Parts, site: str, count: int, which: str) -> dict[str, Sequence[int]]:
    of_kind(Mapping, f"the parts of {site}", parts, "a mapping from the name of each part")
    counted = {name: part for name, part in parts.items() if isinstance(part, int)}
    if counted and sum(counted.values()) != count:
        given = ", ".join(f"{length} of {name}" for name, length in counted.items())
        raise UserError(f"{site} has {count} {which}, but its parts are {given}")
    found: dict[str, Sequence[int]] = {}
    start = 0
    for name, part in parts.items():
        if isinstance(part, int):
            found[name], start = range(start, start + part), start + part
        else:
            places = part if isinstance(part, Iterable) and not isinstance(part, str) else [part]
            found[name] = tuple(whole_number(f"a position of the part {name}", place, least=-MOST) for place in places)
            if wrong := [place for place in found[name] if not 0 <= place < count]:
                raise UserError(f"{site} has {count} {which}, but its part {name} has one at {wrong[0]}")
    return {name: places for name, places in found.items() if len(places)}
