"""All that was seen while a model ran."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from foveate.contracts import Picture
from foveate.errors import UserError, unknown
from foveate.sight import page
from foveate.sight.blocks import exact
from foveate.sight.in_place import InPlace
from foveate.sight.layouts import Windows
from foveate.sight.page.sides import Pair, check_patterns
from foveate.sight.pictures import Alignment, alignments
from foveate.sight.site import ALL, Choice, Site, places

Tokens: TypeAlias = Pair | Mapping[str, Pair]
"""What the queries and keys of all sites are, or of those that fit a pattern."""

READABLE = 64
"""Maps of up to so many places a side are drawn place by place, longer ones pooled to as many cells."""


class Sight:
    """What was seen: `sight[site]` for each of `sight.sites`."""

    def __init__(self, found: dict[str, Site], notes: list[str]) -> None:
        self._found = found
        self.notes = notes
        """What happened to the model because it was looked at."""

    @property
    def sites(self) -> list[str]:
        """The paths of the modules that attended, in the order of their first calls.

        A module that made several maps has one site for each: "layer", "layer#2", ...
        """
        return list(self._found)

    def __getitem__(self, name: str) -> Site:
        if name not in self._found:
            raise unknown("site", name, self._found)
        return self._found[name]

    def put_back(self, windows: Mapping[str, Windows | tuple[Windows, Windows]]) -> "Sight":
        """The same with the windows of a picture in their places, at the sites that fit a pattern; the first counts.

        The queries and keys of such a site are then the patches of the whole picture, row by row. A tuple gives the
        windows of the queries and those of the keys where they differ. Raises UserError where a site has other windows.
        """
        check_patterns(windows, self.sites, "windows")
        found = dict(self._found)
        for name, site in self._found.items():
            given = next((each for pattern, each in windows.items() if fnmatchcase(name, pattern)), None)
            if given is not None:
                found[name] = InPlace(site, *(given if isinstance(given, tuple) else (given, given)))
        return Sight(found, self.notes)

    def rollout(self, sites: str = "*", queries: Choice = ALL) -> Float[Tensor, "B T S"]:
        """How much each place before the first layer reaches the chosen places behind the last: attention rollout.

        From layer to layer, half of a place is its own (the residual connection) and half what its heads look at, as
        their mean (Abnar and Zuidema 2020). `sites` is a pattern for the self-attention of one stack of layers. Memory
        is linear in the places for each chosen one.
        """
        layers = self._stack(sites)
        batch, _, count, _ = layers[0].shape
        chosen = torch.tensor(places(queries, count), device=layers[0].device)
        reach = one_hot(chosen, count).to(exact(layers[0].rows[0].call)).repeat(batch, 1, 1)
        for layer in reversed(layers):
            reach = (reach + layer.carried(reach)) / 2
        return reach

    def _stack(self, pattern: str) -> list[Site]:
        """The layers of one stack, from the first to the last."""
        chosen = [site for name, site in self._found.items() if fnmatchcase(name, pattern)]
        square = [site for site in chosen if site.shape[2] == site.shape[3]]
        stacks = sorted({re.sub(r"\d+", "*", site.name) for site in square})
        sizes = {(site.shape[0], site.shape[2]) for site in square}
        if len(stacks) != 1 or len(sizes) != 1:
            found = " and ".join(stacks) or "no self-attention over equally many queries and keys"
            raise UserError(
                f"a rollout goes through one stack of self-attention, but '{pattern}' has {found}; choose sites="
            )
        return square

    def figure(
        self,
        site: str,
        tokens: Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
        heads: Choice = ALL,
        example: int = 0,
    ) -> Picture:
        """A heatmap for each chosen head of a site, for one example of the batch: a Figure of matplotlib, to `savefig`.

        `tokens` are those of the queries, and of the keys too where no `keys` are given; without any, places are
        numbered. A map of more than 64 places a side is pooled to so many cells, each labelled by its first place.
        """
        found = self[site]
        examples, head_count, rows, columns = found.shape
        if not 0 <= example < examples:
            raise UserError(f"there is no example {example} among {examples}: they count from 0")
        sides = [tokens, keys if keys is not None else tokens if rows == columns else None]
        for side, count, what in zip(sides, (rows, columns), ("queries", "keys"), strict=True):
            if side is not None and len(side) != count:
                raise UserError(f"{site} has {count} {what}, but {len(side)} tokens are given for them")
        numbers = places(heads, head_count)
        if max(rows, columns) <= READABLE:
            maps = found.weights(heads=numbers)[example]
        else:
            maps = found.pooled(READABLE, READABLE)[example, numbers]
        labels = [_labels(*side) for side in zip(sides, (rows, columns), maps.shape[1:], strict=True)]
        title = f"{site}, head {{}}" if head_count > 1 else site
        drawn = zip(numbers, maps, strict=True)
        return alignments([Alignment(each, labels[0], labels[1], title.format(head)) for head, each in drawn])

    def save(self, path: Path | str, tokens: Tokens = None, example: int = 0, **options: Any) -> None:
        """Write one self-contained page that shows all sites of one example of the batch, for any browser.

        `tokens` says what queries and keys are: a list of texts, an `Image` or an `Audio`, a tuple (queries, keys)
        where they differ, or a mapping from patterns of site names to these. `title`, `notes` and `sites` are further
        options; see `foveate.sight.page.document`. Raises UserError where tokens and a map differ in number.
        """
        page.save(path, self._document(tokens, example, **options))

    def _document(
        self, tokens: Tokens = None, example: int = 0, notes: Sequence[str] = (), **options: Any
    ) -> page.Document:
        return page.document(self, tokens, example, notes=[*self.notes, *notes], **options)

    def _repr_html_(self) -> str:
        """The page, for a notebook."""
        return page.frame(self._document()) if self._found else repr(self)

    def __repr__(self) -> str:
        return (
            f"Sight of {len(self._found)} sites: {', '.join(self.sites[:4])}{', ...' if len(self._found) > 4 else ''}"
        )


def _labels(tokens: Sequence[str] | None, count: int, cells: int) -> list[str]:
    """The tokens, or the number of each place; for pooled cells those of their first place."""
    firsts = [cell * count // cells for cell in range(cells)]
    return [str(first) if tokens is None else tokens[first] for first in firsts]
