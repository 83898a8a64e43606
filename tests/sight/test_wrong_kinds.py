"""Whatever is given to a function of `foveate.sight` that it cannot take: one clear line, never an error of torch's."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import foveate
from foveate import sight as seen
from foveate.errors import UserError
from foveate.sight import Flatten, Grid, Knock, Patch, Redirect, Scale, Sharpen, Sight, Windows

SITE = "stack.blocks.0.self"

WRONG: tuple[Any, ...] = (None, "x", 1.5, {"a": 1}, [["x"]], object())
"""No positions, counts, sizes, names or arrays of anything."""


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(3)
    return foveate.create("gpt-tiny", layers=2, vocabulary=31).eval()


TOKENS = torch.tensor([[5, 3, 8, 5, 3, 7, 2]])


@pytest.fixture(scope="module")
def sight(model: nn.Module) -> Sight:
    with foveate.look(model, gradients=True) as found:
        model(TOKENS)
    return found


def opened(context: Any) -> None:
    with context:
        raise AssertionError("a context opened")


def uses(model: nn.Module, sight: Sight, path: Path) -> dict[str, Callable[[Any], Any]]:
    """What takes something, by its name; each is given all that is wrong for it."""
    site, score = sight[SITE], lambda: model(TOKENS).logits[0, -1, 3]
    return {
        "sight[]": lambda wrong: sight[wrong],
        "weights(heads)": lambda wrong: site.weights(heads=wrong),
        "weights(queries)": lambda wrong: site.weights(queries=slice(wrong or "x", None)),
        "weights(keys)": lambda wrong: site.weights(keys=[0, wrong]),
        "top": site.top,
        "pooled": lambda wrong: site.pooled(3, wrong),
        "measure": lambda wrong: site.measure(wrong),
        "received": lambda wrong: site.received("x" if wrong is None else wrong),
        "beam_weights": site.beam_weights,
        "roles": lambda wrong: sight.roles(wrong),
        "roles(delimiters)": lambda wrong: sight.roles(TOKENS, wrong),
        "roles.largest": lambda wrong: sight.roles(TOKENS).largest(wrong),
        "roles.largest(count)": lambda wrong: sight.roles(TOKENS).largest("first", "x" if wrong is None else wrong),
        "roles.of": lambda wrong: sight.roles(TOKENS).of(wrong, 0),
        "roles.of(head)": lambda wrong: sight.roles(TOKENS).of(SITE, wrong),
        "rollout": lambda wrong: sight.rollout(wrong),
        "rollout(queries)": lambda wrong: sight.rollout(queries=wrong),
        "gradients": lambda wrong: sight.gradients(wrong),
        "relevance": lambda wrong: sight.relevance(wrong),
        "without_sinks": lambda wrong: sight.without_sinks(wrong),
        "part": lambda wrong: sight.part(wrong),
        "part of a site": lambda wrong: sight.part({SITE: {"words": "x" if wrong is None else wrong}}),
        "merge_windows": lambda wrong: sight.merge_windows(wrong),
        "merge_windows of a site": lambda wrong: sight.merge_windows({SITE: "x" if wrong is None else wrong}),
        "cut": lambda wrong: sight.cut(wrong),
        "cut of a site": lambda wrong: sight.cut({SITE: wrong}),
        "figure": lambda wrong: sight.figure(wrong),
        "figure(tokens)": lambda wrong: sight.figure(SITE, tokens="x" if wrong is None else wrong),
        "figure(heads)": lambda wrong: sight.figure(SITE, heads=wrong),
        "figure(example)": lambda wrong: sight.figure(SITE, example=wrong),
        "save": lambda wrong: sight.save(path / "page.html" if isinstance(wrong, str) else wrong, ["few"]),
        "save(tokens)": lambda wrong: sight.save(path / "page.html", "x" if wrong is None else wrong),
        "save(example)": lambda wrong: sight.save(path / "page.html", example=wrong),
        "save(sites)": lambda wrong: sight.save(path / "page.html", sites="x" if wrong is None else wrong),
        "look": lambda wrong: opened(foveate.look(wrong)),
        "look(sites)": lambda wrong: opened(foveate.look(model, 5 if wrong in (None, "x") else wrong)),
        "look(keep)": lambda wrong: opened(foveate.look(model, keep="x" if wrong is None else wrong)),
        "change": lambda wrong: opened(foveate.change(wrong, {SITE: Knock(0)})),
        "change(changes)": lambda wrong: opened(foveate.change(model, wrong)),
        "change of a site": lambda wrong: opened(foveate.change(model, {SITE: wrong})),
        "Knock": lambda wrong: Knock(heads=[wrong]),
        "Knock(keys)": lambda wrong: Knock(keys="x" if wrong is None else wrong),
        "Scale": Scale,
        "Scale(heads)": lambda wrong: Scale(2.0, "x" if wrong is None else wrong),
        "Sharpen": lambda wrong: Sharpen("x" if wrong == 1.5 else wrong),
        "Flatten": lambda wrong: Flatten("x" if wrong is None else wrong),
        "Redirect": lambda wrong: Redirect([wrong]),
        "Redirect(others)": lambda wrong: Redirect([1], others="x" if wrong == 1.5 else wrong),
        "Patch": lambda wrong: Patch(wrong, queries=True),
        "effects": lambda wrong: seen.effects(model, wrong),
        "effects(model)": lambda wrong: seen.effects(wrong, score),
        "effects of what is given": lambda wrong: seen.effects(model, lambda: (score(), wrong)[1]),
        "effects(sites)": lambda wrong: seen.effects(model, score, sites=wrong),
        "effects(exact)": lambda wrong: seen.effects(model, score, exact="x" if wrong is None else wrong),
        "effects(of)": lambda wrong: seen.effects(model, score, of=wrong),
        "effects(copies)": lambda wrong: seen.effects(model, score, copies="x" if wrong is None else wrong),
        "effects.largest": lambda wrong: seen.effects(model, score, exact=1).largest(wrong),
        "key_effects": lambda wrong: seen.key_effects(model, score, wrong),
        "from_weights": seen.from_weights,
        "show(tokens)": lambda wrong: seen.show(torch.ones(2, 2) / 2, wrong or "x").save(path / "page.html"),
        "register": lambda wrong: seen.register(layers=[wrong]),
        "register(layers)": lambda wrong: seen.register(layers="x" if wrong is None else wrong),
        "Grid": lambda wrong: Grid(wrong, 3),
        "Grid.map": Grid(2, 3).map,
        "Windows": lambda wrong: Windows(3, wrong, (1, 1)),
        "Windows(window)": lambda wrong: Windows(3, 3, wrong),
    }


@pytest.mark.usefixtures("unchecked")
def test_one_clear_line(model: nn.Module, sight: Sight, tmp_path: Path) -> None:
    for name, use in uses(model, sight, tmp_path).items():
        for wrong in WRONG:
            if (name, wrong) in ALLOWED:
                continue
            with pytest.raises(UserError) as mistake:
                use(wrong)
            message = str(mistake.value)
            assert re.fullmatch(r"[^\n]{10,400}", message), (name, wrong, message)


ALLOWED = (("Scale", 1.5), ("without_sinks", None))
