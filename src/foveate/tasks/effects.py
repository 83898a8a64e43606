"""Measures what heads, layers and places of an input do to the score of an answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from foveate.forms.naming import Naming
from foveate.sight import effects, key_effects
from foveate.viewer.document import Effect, EffectPanel, PlaceEffects
from foveate.viewer.effects import EffectResult
from foveate.viewer.protocol import LookResult
from foveate.viewer.sides import Side, make_sides

EXACT = 32
"""Heads, layers and places that are taken out, of each kind the largest ones; all others are estimated."""

AT_ONCE = 16
"""Copies of an input in one batch, at most."""

PLACES = 8192
"""Places of all copies in one batch, at most."""

Score = Callable[[int], Tensor]
"""Runs the model on this many copies of its input, and gives the score of each."""


@dataclass(frozen=True)
class ShownPlaces:
    """Places of an input that a page shows together: the words of a text, or the cells of an image."""

    site: str
    """A site of the page."""
    side: Side
    """Its keys."""
    places: Sequence[int]
    """Which of these keys are shown."""
    keys: Sequence[int]
    """The number of each place among the keys of the sites that are changed."""


@dataclass(frozen=True)
class InputPlaces:
    """The places of an input, and the sites whose keys they are."""

    sites: Sequence[str]
    shown: Sequence[ShownPlaces]

    @property
    def keys(self) -> list[int]:
        """The keys that are shown, of all parts."""
        return [key for part in self.shown for key in part.keys]


@dataclass(frozen=True)
class ScoredLook:
    """A look at a model, and the score of its answer, which a change of the model may raise or lower."""

    looked: LookResult
    sites: Sequence[str]
    """The modules that attend."""
    inputs: Sequence[InputPlaces]
    """What the model reads."""
    score: Score
    answer: tuple[str, str]
    """What is scored, and what the score is."""


def measure_effects(model: nn.Module, scored: ScoredLook, exact: int | None = EXACT) -> EffectResult:
    """The effects of the sites of a look, and of the places of its input."""
    score, looked = scored.score, scored.looked
    sites = [*dict.fromkeys(name.partition("#")[0] for name in scored.sites)]
    alone = lambda: score(1)[0]  # noqa: E731
    with torch.backends.cudnn.flags(enabled=False):  # which has no gradients of recurrent layers in evaluation
        way: Any = {"exact": exact, **_copies(score, looked)}
        heads = effects(model, alone, sites, **way)
        layers = effects(model, alone, sites, of="sites", **way)
        by_key = [key_effects(model, alone, own.sites, among=own.keys, **way) for own in scored.inputs]
    by_head = {
        site: [_effect(heads.exact.get((site, head)), one) for head, one in enumerate(heads.estimates[site].tolist())]
        for site in sites
    }
    by_layer = {site: _effect(layers.exact.get((site, None)), float(layers.estimates[site].sum())) for site in sites}
    places: list[PlaceEffects] = []
    for own, found in zip(scored.inputs, by_key, strict=True):
        for part in own.shown:
            each = [_effect(found.exact.get(key), float(found.estimates[key])) for key in part.keys]
            places.append(PlaceEffects(part.site, part.places, each))
    panel = EffectPanel(*scored.answer, heads.value, by_head, by_layer, places)
    return EffectResult(looked, panel, [part.side for own in scored.inputs for part in own.shown])


def _effect(exact: float | None, estimate: float) -> Effect:
    return Effect(estimate if exact is None else exact, exact is not None)


def _copies(score: Score, looked: LookResult) -> dict[str, Any]:
    """How to run on several copies at once; nothing where a model gives a copy another score than the input alone."""
    longest = max(max(looked.sight[name].shape[2:]) for name in looked.sight.sites)
    with torch.no_grad():
        both = torch.cat([score(1), score(2)])
    together = torch.allclose(both[1:], both[0].expand(2), rtol=1e-3, atol=1e-3)
    return {"copies": score, "at_once": max(1, min(AT_ONCE, PLACES // longest))} if together else {}


def input_places(looked: LookResult, along: Naming, others: bool = True) -> list[InputPlaces]:
    """The places of an input, which `along` names, if sites have them as keys: not where windows or points of feature
    maps number them anew. With `others`, where no keys are named so, those of what the model made of the input."""
    sight, found = looked.sight, dict[str, Side]()
    repeated = {name.partition("#")[0] for name in sight.sites if "#" in name}
    for name in sight.sites:
        _, _, queries, keys = sight[name].shape
        numbered = sight[name].windows is None and sight[name].maps is None
        if name not in repeated and numbered and "#" not in name:
            found[name] = make_sides(looked.tokens, name, queries, keys)[1]

    def of_input(name: str, side: Side) -> bool:
        return side == make_sides(along(side.count), name, side.count, side.count)[1]

    wanted = [name for name, side in found.items() if of_input(name, side)] or [*(found if others else ())]
    named = [found[name] for name in wanted if found[name].labels or found[name].picture is not None]
    if not named:
        return []
    side = max(named, key=named.count)
    sites, all_of_it = [name for name in wanted if found[name] == side], range(side.count)
    return [InputPlaces(sites, [ShownPlaces(sites[0], side, all_of_it, all_of_it)])]
