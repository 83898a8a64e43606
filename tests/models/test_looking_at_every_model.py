"""A look at a model of foveate's own watches its layers that attend, and copies what others might change. It sees what
a look sees that watches every layer and copies all."""

import importlib

import pytest
import torch
from variants import Variant, variants

import foveate
from foveate import models

ATTENDING = {models.presets()[variant.preset].family: variant for variant in variants() if variant.attends}
"""One of each family."""


@pytest.mark.parametrize("one", ATTENDING.values(), ids=str)
def test_a_look_sees_the_same_as_one_that_watches_everything(one: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs, found = one.build(), one.inputs, []
    for watched in (False, True):
        if watched:
            # by its full name, because the package has a function of the module's name
            monkeypatch.setattr(importlib.import_module("foveate.sight.look"), "own_modules", lambda _: None)
        with torch.inference_mode(), foveate.look(model) as sight:
            model(**inputs)
        found.append({name: sight[name].weights() for name in sight.sites})
    few, all_of_them = found
    assert list(few) == list(all_of_them)
    for name, weights in few.items():
        assert torch.equal(weights, all_of_them[name]), name
