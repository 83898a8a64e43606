"""Every measure of a look, and every change, on a pretended accelerator."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from pretended import DEVICE, on_cpu, pretended_device
from torch import Tensor

import foveate
from foveate.sight import Change, Flatten, Knock, Patch, Redirect, Scale, Sharpen, Sight, Site, effects, key_effects
from foveate.sight import measured_look as looks
from foveate.sight.measures import MEASURES

Sentence = tuple[Any, dict[str, Tensor]]

OF_SITE: dict[str, Callable[[Site], Tensor]] = {
    "weights": lambda site: site.weights(),
    "weights of a head": lambda site: site.weights(heads=[1], queries=[-1, 0], keys=slice(1, 3)),
    "top": lambda site: site.top(3).weights,
    "top keys": lambda site: site.top(3).keys,
    "entropy": lambda site: site.entropy(),
    "max": lambda site: site.max(),
    "score": lambda site: site.largest_score(),
    "statistics": lambda site: torch.stack([*site.statistics()]),
    "received": lambda site: site.received(),
    "received from some": lambda site: site.received([3, 2, 2]),
    "distance": lambda site: site.distance(),
    "pooled": lambda site: site.pooled(2, 3),
    "propagate": lambda site: site.propagate(torch.ones(3, 1, site.shape[2], device=site.device)),
}
"""What a site tells of its map."""

OF_LOOK: dict[str, Callable[[Sight], Tensor]] = {
    "rollout": lambda sight: sight.rollout("encoder.*"),
    "without sinks": lambda sight: sight.without_sinks(0.1)[sight.sites[0]].weights(),
    "roles": lambda sight: torch.cat(
        [
            heads
            for of in _encoder(sight).roles(torch.arange(21).view(3, 7) % 5).scores.values()
            for heads in of.values()
        ]
    ),
}
"""What a look tells of several sites."""

CHANGES: dict[str, Callable[[Site], Change]] = {
    "scale": lambda site: Scale(0.0, 0),
    "knock heads": lambda site: Knock([0]),
    "knock edges": lambda site: Knock(queries=[-1, 2], keys=slice(0, 2)),
    "redirect": lambda site: Redirect([0, 1], heads=[1]),
    "sharpen": lambda site: Sharpen(2.0, 1),
    "flatten": lambda site: Flatten([0]),
    "patch": lambda site: Patch(site, [0], queries=True, keys=True),
}


def _encoder(sight: Sight) -> Sight:
    return Sight({name: sight[name] for name in sight.sites if name.startswith("encoder")}, [])


def sentence() -> Sentence:
    torch.manual_seed(1)
    model: Any = foveate.create("transformer-tiny", src_vocab=17, tgt_vocab=13, width=16).eval()
    source, target = torch.randint(4, 13, (2, 3, 7))
    return model, {"source": source, "source_lengths": torch.tensor([7, 5, 2]), "target": target[:, :5]}


def moved(sentence: Sentence) -> Sentence:
    model, inputs = sentence
    return model.to(DEVICE), {name: value.to(DEVICE) for name, value in inputs.items()}


def compare(ask: Callable[[Any, dict[str, Tensor]], list[Tensor]]) -> None:
    """Checks that what is asked of a model and its inputs is the same on the device as on the CPU."""
    expected = [on_cpu(one) for one in ask(*sentence())]
    with pretended_device():
        found = [on_cpu(one) for one in ask(*moved(sentence()))]
    assert len(found) == len(expected) > 0
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-4)


def looked(model: Any, inputs: dict[str, Tensor], **options: Any) -> Sight:
    with torch.no_grad(), foveate.look(model, **options) as sight:
        model(**inputs)
    return sight


def answer(output: Any) -> Tensor:
    likely: Tensor = output.logits[:, -1].log_softmax(-1)[:, 5].sum()
    return likely


@pytest.mark.parametrize("measure", OF_SITE)
def test_measures(measure: str) -> None:
    compare(lambda model, inputs: [OF_SITE[measure](site) for site in looked(model, inputs)])


def test_measures_while_the_model_runs() -> None:
    """Those that are kept without queries and keys."""
    assert MEASURES.keys() <= OF_SITE.keys()
    asked = [OF_SITE[name] for name in MEASURES if name != "pooled"]

    def ask(model: Any, inputs: dict[str, Tensor]) -> list[Tensor]:
        sight = looked(model, inputs, keep=[*MEASURES])
        return [one(site) for site in sight for one in (*asked, Site.pooled)]

    compare(ask)


@pytest.mark.parametrize("measure", OF_LOOK)
def test_looks(measure: str) -> None:
    compare(lambda model, inputs: [OF_LOOK[measure](looked(model, inputs))])


@pytest.mark.parametrize("measure", looks.MEASURES)
def test_maps(measure: str) -> None:
    """All that the maps of a page can show."""

    def ask(model: Any, inputs: dict[str, Tensor]) -> list[Tensor]:
        sight, _ = looks.measured_look(model, lambda: model(**inputs), measure, target=answer)
        return [site.weights() for site in looks.finished(sight, measure)]

    compare(ask)


def test_signed_gradients_and_relevance() -> None:
    def ask(model: Any, inputs: dict[str, Tensor]) -> list[Tensor]:
        with foveate.look(model, gradients=True) as sight:
            target = answer(model(**inputs))
        signed = sight.gradients(target, signed=True)
        return [*(site.weights() for site in signed), sight.relevance(target, "encoder.*").detach()]

    compare(ask)


def test_effects_of_heads_and_keys() -> None:
    def ask(model: Any, inputs: dict[str, Tensor]) -> list[Tensor]:
        alone = {name: value[:1] for name, value in inputs.items()}
        of_heads = effects(model, lambda: answer(model(**alone)), exact=3)
        sites = [name for name in of_heads.estimates if "cross" in name]
        of_keys = key_effects(model, lambda: answer(model(**alone)), sites, exact=2)
        exact = [*of_heads.exact.values(), *of_keys.exact.values()]
        return [*of_heads.estimates.values(), of_keys.estimates, torch.tensor(exact)]

    compare(ask)


def test_every_change_is_here() -> None:
    own = {kind for kind in Change.__subclasses__() if kind.__module__ == Change.__module__}
    site = next(iter(looked(*sentence())))
    assert {type(make(site)) for make in CHANGES.values()} == own


@pytest.mark.parametrize("kind", CHANGES)
def test_changes(kind: str) -> None:
    def ask(model: Any, inputs: dict[str, Tensor]) -> list[Tensor]:
        others = {**inputs, "source": inputs["source"].flip(1)}
        sites = looked(model, others)
        with torch.no_grad(), foveate.change(model, {site.name: CHANGES[kind](site) for site in sites}):
            return [model(**inputs).logits]

    compare(ask)
    model, inputs = sentence()
    with torch.no_grad():
        assert not torch.allclose(ask(model, inputs)[0], model(**inputs).logits, atol=1e-4)
