"""All that was seen while a model ran."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from foveate.contracts import Picture
from foveate.errors import UserError, unknown
from foveate.sight.blocks import exact
from foveate.sight.layouts import Windows
from foveate.sight.rendering import renderer
from foveate.sight.site import ALL, Choice, Site, places
from foveate.sight.site_patterns import check_patterns, value_for
from foveate.sight.window_merge import InPlace


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
            given = value_for(name, windows)
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
        return renderer().figure(self, site, tokens, keys, heads, example)

    def save(self, path: Path | str, tokens: Any = None, example: int = 0, **options: Any) -> None:
        """Write one self-contained page that shows all sites of one example of the batch, for any browser.

        `tokens` says what queries and keys are: a list of texts, an `Image` or an `Audio`, a tuple (queries, keys)
        where they differ, or a mapping from patterns of site names to these. `title`, `notes` and `sites` are further
        options; see `foveate.viewer.document`. Raises UserError where tokens and a map differ in number.
        """
        renderer().save(self, path, tokens, example, **options)

    def _repr_html_(self) -> str:
        """The page, for a notebook."""
        return renderer().frame(self) if self._found else repr(self)

    def __repr__(self) -> str:
        return (
            f"Sight of {len(self._found)} sites: {', '.join(self.sites[:4])}{', ...' if len(self._found) > 4 else ''}"
        )
