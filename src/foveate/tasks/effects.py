"""Measures what heads, layers and places of an input do to the score of an answer."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from foveate.forms.naming import Naming
from foveate.sight import effects, key_effects
from foveate.viewer.document import Effect, EffectPanel
from foveate.viewer.effects import EffectResult, place_names
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


def measure_effects(
    model: nn.Module,
    score: Score,
    looked: LookResult,
    along: Naming,
    answer: tuple[str, str],
    exact: int | None = EXACT,
) -> EffectResult:
    """The effects of the sites of a look, and of the places of the input, which `along` names; `answer` is what is
    scored, and what the score is."""
    sites = [*dict.fromkeys(name.partition("#")[0] for name in looked.sight.sites)]
    alone = lambda: score(1)[0]  # noqa: E731
    with torch.backends.cudnn.flags(enabled=False):  # which has no gradients of recurrent layers in evaluation
        way: Any = {"exact": exact, **_copies(score, looked)}
        heads = effects(model, alone, sites, **way)
        layers = effects(model, alone, sites, of="sites", **way)
        keyed, side = input_sites(looked, along)
        keys = key_effects(model, alone, keyed, **way) if keyed else None
    by_head = {
        site: [_effect(heads.exact.get((site, head)), one) for head, one in enumerate(heads.estimates[site].tolist())]
        for site in sites
    }
    by_layer = {site: _effect(layers.exact.get((site, None)), float(layers.estimates[site].sum())) for site in sites}
    estimates = [] if keys is None else keys.estimates.tolist()
    by_key = [_effect(keys.exact.get(key), one) for key, one in enumerate(estimates)] if keys is not None else []
    panel = EffectPanel(*answer, heads.value, by_head, by_layer, by_key, keyed[0] if keyed else "")
    return EffectResult(looked, panel, place_names(side) if side is not None else ())


def _effect(exact: float | None, estimate: float) -> Effect:
    return Effect(estimate if exact is None else exact, exact is not None)


def _copies(score: Score, looked: LookResult) -> dict[str, Any]:
    """How to run on several copies at once; nothing where a model gives a copy another score than the input alone."""
    longest = max(max(looked.sight[name].shape[2:]) for name in looked.sight.sites)
    with torch.no_grad():
        both = torch.cat([score(1), score(2)])
    together = torch.allclose(both[1:], both[0].expand(2), rtol=1e-3, atol=1e-3)
    return {"copies": score, "at_once": max(1, min(AT_ONCE, PLACES // longest))} if together else {}


def input_sites(looked: LookResult, along: Naming) -> tuple[list[str], Side | None]:
    """The sites whose keys are the places of the input, and these places; none where windows number them anew."""
    sight, found = looked.sight, dict[str, Side]()
    repeated = {name.partition("#")[0] for name in sight.sites if "#" in name}
    for name in sight.sites:
        _, _, queries, keys = sight[name].shape
        if name not in repeated and sight[name].windows is None and "#" not in name:
            found[name] = make_sides(looked.tokens, name, queries, keys)[1]

    def of_input(name: str, side: Side) -> bool:
        return side == make_sides(along(side.count), name, side.count, side.count)[1]

    wanted = [name for name, side in found.items() if of_input(name, side)] or [*found]
    named = [found[name] for name in wanted if found[name].labels or found[name].picture is not None]
    if not named:
        return [], None
    side = max(named, key=named.count)
    return [name for name in wanted if found[name] == side], side
