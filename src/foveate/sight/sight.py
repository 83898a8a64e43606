"""A `Sight`: all attention that was recorded while a model ran."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from foveate.contracts import Picture
from foveate.errors import UserError, at_least, at_most, of_kind, two_whole_numbers, unknown
from foveate.sight.gradients import GradientSite, gradients_of
from foveate.sight.layouts import Windows
from foveate.sight.measures import ALL, Choice, resolve_choice
from foveate.sight.norms import NormSite
from foveate.sight.parts import Parts, SitePart, cut
from foveate.sight.rendering import renderer
from foveate.sight.roles import Roles, roles
from foveate.sight.sinks import SINK, WithoutSinks
from foveate.sight.site import Site
from foveate.sight.site_patterns import check_patterns, value_for
from foveate.sight.summed_points import SummedPoints
from foveate.sight.window_merge import MergedWindows


def stack_names(paths: Sequence[str], pattern: str) -> list[str]:
    """The names of the stacks that layers belong to, with `*` for what numbers the layers of each.

    Two lists inside each other may be the stages of one stack or two towers: they are one stack only where `pattern`
    has a `*` for each of them.
    """
    shapes = {re.sub(r"\d+", "*", path) for path in paths}
    if len(shapes) != 1:
        return sorted(shapes)
    numbers = [re.findall(r"\d+", path) for path in paths]
    changing = [place for place, column in enumerate(zip(*numbers, strict=True)) if len(set(column)) > 1]
    if len(changing) < 2 or pattern.count("*") >= len(changing):
        return sorted(shapes)
    templates = {re.sub(r"\d+", "{}", path) for path in paths}
    kept = [[number if place in changing[:-1] else "*" for place, number in enumerate(own)] for own in numbers]
    names = {template.format(*own) for template in templates for own in kept}
    return sorted(names)


class Sight:
    """The recorded sites: `sight[name]` for each name in `sight.sites`, or `for site in sight`."""

    def __init__(self, recorded: dict[str, Site], notes: list[str]) -> None:
        self._recorded = recorded
        self.notes = notes
        """How the look changed the run of the model, if it did."""

    @property
    def sites(self) -> list[str]:
        """The paths of the modules that attended, in the order of their first calls.

        A module that made several maps has one site for each: "layer", "layer#2", ...
        """
        return list(self._recorded)

    def __getitem__(self, name: str) -> Any:
        """The `Site` of this name; of a pattern such as "decoder.*.cross", a `Sight` of the sites that match it."""
        of_kind(str, "a site", name, "its name or a pattern")
        if name in self._recorded:
            return self._recorded[name]
        matched = {path: site for path, site in self._recorded.items() if fnmatchcase(path, name)}
        if not matched:
            raise unknown("site", name, self._recorded)
        return Sight(matched, self.notes)

    def __iter__(self) -> Iterator[Site]:
        return iter(self._recorded.values())

    def __len__(self) -> int:
        return len(self._recorded)

    def merge_windows(self, windows: Mapping[str, Windows | tuple[Windows, Windows]]) -> "Sight":
        """A sight in which windows of a picture are merged into one map, at the sites that match a pattern.

        The queries and keys of such a site are then the patches of the whole picture, row by row. If several patterns
        match, the first counts. A tuple gives the windows of the queries and those of the keys. Raises UserError if a
        site has other windows.
        """
        check_patterns(windows, self.sites, "windows")
        merged = dict(self._recorded)
        for name, site in self._recorded.items():
            given = value_for(name, windows)
            if given is not None:
                both = given if isinstance(given, tuple) and len(given) == 2 else (given, given)
                for each in both:
                    of_kind(Windows, f"windows of {name}", each, "Windows, or a tuple of two")
                merged[name] = MergedWindows(site, *both)
        return Sight(merged, self.notes)

    def sum_points(self) -> "Sight":
        """A sight in which attention to points of feature maps is one map over the image: its keys are the places of
        the finest feature map, row by row. `site.points()` still has the points."""
        return self._each(lambda site: site if site.grids is None else SummedPoints(site))

    def part(self, parts: Mapping[str, Parts | tuple[Parts, Parts]]) -> "Sight":
        """A sight in which joint sequences are cut into their parts, at the sites that match a pattern.

        `sight.part({"*.attn": {"text": 77, "image": 4096}})` has four sites for each layer of a model that reads text
        and image as one sequence: "attn.text-text", "attn.text-image", "attn.image-text", whose rows are those of the
        image and whose keys are the text, and "attn.image-image". A tuple gives the parts of the queries and those of
        the keys. A part may name its positions in place of their number: {"image": [5, 6, 7]}. Raises UserError if a
        map is shorter or longer than its parts.
        """
        check_patterns(parts, self.sites, "parts")
        found: dict[str, Site] = {}
        for name, site in self._recorded.items():
            given = value_for(name, parts)
            if given is None:
                found[name] = site
            else:
                found |= cut(site, *(given if isinstance(given, tuple) else (given, given)))
        return Sight(found, self.notes)

    def cut(self, sizes: Mapping[str, tuple[int, int]]) -> "Sight":
        """A sight in which the named sites end after so many queries and keys, such as those before padding. Rows sum
        to what is left."""
        check_patterns(sizes, self.sites, "sizes")
        found = dict(self._recorded)
        for name, size in sizes.items():
            queries, keys = two_whole_numbers(f"the size of {name}", size)
            found[name] = SitePart(self[name], name, range(queries), range(keys))
        return Sight(found, self.notes)

    def rollout(self, sites: str = "*", queries: Choice = ALL) -> Float[Tensor, "B T S"]:
        """Attention rollout (Abnar and Zuidema 2020): how much each input position contributes to the chosen outputs.

        Each layer is taken as half the residual connection and half the weights averaged over heads. `sites` is a
        pattern for the self-attention of one stack of layers. Layers that lie in several lists, such as the stages of
        one stack or two towers, are taken together only by a pattern with a `*` for each list ("stages.*.blocks.*").
        Memory is linear in the positions for each chosen one.
        """
        layers = self._stack(sites)
        shares = self._chosen_rows(layers[0], queries)
        for layer in reversed(layers):
            shares = (shares + layer.propagate(shares)) / 2
        return shares

    def norms(self) -> "Sight":
        """The same sites with each weight times the norm of what it weighs, after the output projection: what each key
        really gives (Kobayashi et al. 2020). It needs `look(model, values=True)`. Rows do not sum to 1."""
        return self._each(NormSite)

    def without_sinks(self, above: float = SINK) -> "Sight":
        """The same sites without the keys that have more than this mean weight over all queries, as shares of what is
        left: where a head looks when it does not look at its resting place."""
        at_least(0, "above", above)
        at_most(1, "above", above)
        return self._each(lambda site: WithoutSinks(site, above))

    def gradients(self, target: Tensor, signed: bool = False) -> "Sight":
        """The same sites with each weight times its gradient: what made `target`, a number computed from the output,
        larger; and below 0 what made it smaller, if `signed`. It needs `look(model, gradients=True)`."""
        found = gradients_of(list(self), target)
        return self._each(lambda site: GradientSite(site, found, signed))

    def relevance(self, target: Tensor, sites: str = "*", queries: Choice = ALL) -> Float[Tensor, "B T S"]:
        """How much each input position contributes to `target` through the chosen outputs (Chefer et al. 2021).

        As a rollout, with weights times their positive gradients in place of weights: a layer adds to the residual
        connection what its heads give on average. `target` is a sum over the examples, and `sites` is one stack of
        layers, as for `rollout`. It needs `look(model, gradients=True)`.
        """
        layers = self._stack(sites)
        found = gradients_of(layers, target)
        shares = self._chosen_rows(layers[0], queries)
        for layer in reversed(layers):
            shares = shares + GradientSite(layer, found, signed=False).propagate(shares)
        return shares

    def roles(self, tokens: Any, delimiters: Collection[Any] = ()) -> Roles:
        """What each head does with the `tokens` of the text that was read: previous token, induction, ..., with a score
        each (see `foveate.sight.roles`).

            sight.roles(ids).largest("induction", 3)  # site, head, score
        """
        return roles(list(self), tokens, delimiters)

    def _each(self, make: Callable[[Site], Site]) -> "Sight":
        return Sight({name: make(site) for name, site in self._recorded.items()}, self.notes)

    @staticmethod
    def _chosen_rows(layer: Site, queries: Choice) -> Float[Tensor, "B N T"]:
        """For each chosen query a row that is 1 at its place."""
        batch, _, count, _ = layer.shape
        chosen = torch.tensor(resolve_choice(queries, count), device=layer.device)
        return one_hot(chosen, count).to(layer.dtype).repeat(batch, 1, 1)

    def _stack(self, pattern: str) -> list[Site]:
        """The self-attention layers of one stack, from the first to the last.

        A layer that one run of the model uses several times, as ALBERT does, counts each time.
        """
        of_kind(str, "sites", pattern, "a pattern of sites")
        chosen = [site for name, site in self._recorded.items() if fnmatchcase(name, pattern)]
        square = [site for site in chosen if site.shape[2] == site.shape[3]]
        one_run = len({site.run for site in square}) == 1
        paths = [site.name.split("#")[0] if one_run else site.name for site in square]
        stacks = stack_names(paths, pattern)
        sizes = {(site.shape[0], site.shape[2]) for site in square}
        if len(stacks) != 1 or len(sizes) != 1:
            names = " and ".join(stacks) or "no self-attention with as many queries as keys"
            raise UserError(f"a rollout needs one stack of self-attention, but '{pattern}' has {names}; choose sites=")
        return square

    def figure(
        self,
        site: str,
        tokens: Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
        heads: Choice = ALL,
        example: int = 0,
    ) -> Picture:
        """A heatmap for each chosen head of a site, for one example of the batch: a matplotlib Figure.

        `tokens` are the tokens of the queries, and of the keys unless `keys` are given; without them positions are
        numbered. A map with more than 64 queries or keys is pooled to 64 cells, labelled by their first positions.
        """
        return renderer().figure(self, site, tokens, keys, heads, example)

    def save(self, path: Path | str, tokens: Any = None, example: int = 0, **options: Any) -> None:
        """Write one self-contained HTML page that shows all sites for one example of the batch.

        `tokens` names queries and keys: a list of texts, an `Image` or an `Audio` of `foveate.viewer`, a tuple
        (queries, keys) if they differ, or a mapping from patterns of site names to these. Further options are `title`,
        `notes` and `sites`; see `foveate.viewer.document`. Raises UserError if there are more or fewer tokens than
        queries or keys.
        """
        renderer().save(self, path, tokens, example, **options)

    def show(self, tokens: Any = None, example: int = 0, **options: Any) -> "Shown":
        """The page that `save` writes, as what a notebook shows at the end of a cell."""
        return Shown(self, tokens, example, options)

    def _repr_html_(self) -> str:
        """The page, for notebooks."""
        return self.show()._repr_html_() if self._recorded else repr(self)

    def __repr__(self) -> str:
        more = ", ..." if len(self._recorded) > 4 else ""
        return f"Sight of {len(self._recorded)} sites: {', '.join(self.sites[:4])}{more}"


@dataclass(frozen=True)
class Shown:
    """A page of a sight, with the names of queries and keys: at the end of a notebook's cell it is shown."""

    sight: Sight
    tokens: Any = field(repr=False, default=None)
    example: int = field(repr=False, default=0)
    options: Mapping[str, Any] = field(repr=False, default_factory=dict)

    def save(self, path: Path | str) -> None:
        """Write the page to a file."""
        self.sight.save(path, self.tokens, self.example, **self.options)

    def _repr_html_(self) -> str:
        return renderer().frame(self.sight, self.tokens, self.example, **self.options)
