"""Steps of writing by plain functions equal those of the model itself."""

import copy
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from variants import ELSEWHERE, PRESETS, Variant

import foveate
from foveate.attention import HardCapped, ScaledDot, SoftCapped
from foveate.decoding.beam_sources import BeamSources
from foveate.inference import lean
from foveate.inference.lean import lean_copy
from foveate.models.text.causal_language_model import CausalLanguageModel
from foveate.nn import DecoderStack, MultiHeadAttention
from foveate.sight import Knock

OWN_STEPS = {"gopher-280b"}
"""Presets whose blocks have parts that lean steps do not know: projected relative positions."""


def texts(model: Any) -> Tensor:
    """Logits of a language model that reads two prompts, goes on, and then goes on with its rows swapped."""
    tokens = torch.tensor([[2, 3, 4, 5], [0, 0, 6, 7]])
    logits, state = model.prefill(tokens=tokens, lengths=torch.tensor([4, 2]), padding_side="left")
    found = [logits, model.step(torch.tensor([5, 6]), state), model.step(torch.tensor([7, 8]), state)]
    state.reorder(torch.tensor([1]))  # whose padding stays
    found.append(model.step(torch.tensor([9]), state))
    logits, state = model.prefill(tokens=tokens[:1], lengths=torch.tensor([4]))
    return torch.cat([*found, logits, model.step(torch.tensor([5]), state)])


def beams(model: Any, inputs: dict[str, Tensor]) -> Tensor:
    """Logits of a model with a source whose rows become beams of different sources."""
    source = {name: value for name, value in inputs.items() if not name.startswith("target")}
    state = model.start(**source)
    found = [model.step(torch.tensor([1, 1, 1]), state)]
    state.share(BeamSources(torch.arange(3)))
    state.reorder(torch.tensor([0, 0, 1, 2, 2, 2]))
    found.append(model.step(torch.tensor([4, 5, 6, 7, 8, 9]), state))
    state.reorder(torch.tensor([5, 1, 0]))
    found.append(model.step(torch.tensor([4, 5, 6]), state))
    return torch.cat(found)


def writers() -> Iterator[tuple[Variant, nn.Module]]:
    """The presets of all language models, and of all models with decoder blocks; each small configuration once."""
    known = set[str]()
    for preset in PRESETS.values():
        variant = Variant(preset.name)
        if preset.family in ELSEWHERE or repr(variant.config) in known:
            continue
        known.add(repr(variant.config))
        if issubclass(variant.model, CausalLanguageModel):
            yield variant, variant.build()
        elif variant.writes:
            model = variant.build()
            if any(isinstance(part, DecoderStack) for part in model.modules()):
                yield variant, model


def test_all_models_that_write_take_lean_steps_that_equal_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"steps": 0}
    found = []
    for kind in (lean.LeanBlock, lean.LeanDecoderBlock):
        own = kind.serves

        def serves(block: Any, *given: Any, own: Any = own) -> bool:
            served: bool = own(block, *given)
            counts["steps"] += served
            return served

        monkeypatch.setattr(kind, "serves", serves)
    for variant, model in writers():
        whole = isinstance(model, CausalLanguageModel)
        run = texts if whole else partial(beams, inputs=variant.inputs)
        counts["steps"] = 0
        with torch.inference_mode():
            torch.testing.assert_close(run(lean_copy(model)), run(model), atol=1e-5, rtol=1e-5, msg=str(variant))
        if not counts["steps"]:
            found.append(str(variant))
    assert set(found) == OWN_STEPS


def model() -> nn.Module:
    return Variant("llama-7b").build()


def test_looks_changes_and_gradients_take_the_steps_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean, "attend_step", lambda *_: pytest.fail("a lean step"))
    plain = model()
    own = lean_copy(plain)
    texts(own)
    with torch.inference_mode():
        with foveate.look(own) as sight:
            texts(own)
        with foveate.look(plain) as expected:
            texts(plain)
        assert [site.name for site in sight] == [site.name for site in expected]
        with foveate.change(own, {"*": Knock(heads=[0])}):
            texts(own)
        with pytest.raises(BaseException, match="a lean step"):
            texts(own)


def test_a_copy_shares_what_it_steps_with() -> None:
    first = lean_copy(model())
    second = copy.deepcopy(first)
    with torch.inference_mode():
        assert torch.equal(texts(second), texts(first))


def test_scores_of_another_kind_take_their_own_steps() -> None:
    """Also those of a subclass of a known score."""
    for score, known in ((SoftCapped(ScaledDot(), 2.0), True), (HardCapped(ScaledDot(), 2.0), False)):
        layer = MultiHeadAttention(12, 3, score=score)
        with nullcontext() if known else pytest.raises(lean._UnknownPart):
            assert lean.scoring(layer)[1] == 2.0
