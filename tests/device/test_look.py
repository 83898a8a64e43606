"""Every measure of a look, and a change, on a pretended accelerator."""

from typing import Any

import pytest
import torch
from pretended import DEVICE, on_cpu, pretended_device
from torch import Tensor

import foveate
from foveate.sight import Scale

MEASURES = {
    "weights": lambda site: site.weights(),
    "top": lambda site: site.top(3).weights,
    "entropy": lambda site: site.entropy(),
    "received": lambda site: site.received(),
    "distance": lambda site: site.distance(),
}


def sentence() -> tuple[Any, dict[str, Tensor]]:
    torch.manual_seed(1)
    model: Any = foveate.create("transformer-tiny", src_vocab=17, tgt_vocab=13, width=16).eval()
    source, target = torch.randint(4, 13, (2, 3, 7))
    return model, {"source": source, "source_lengths": torch.tensor([7, 5, 2]), "target": target[:, :5]}


@pytest.mark.parametrize("measure", MEASURES)
def test_measures(measure: str) -> None:
    model, inputs = sentence()

    def looked(inputs: dict[str, Tensor]) -> list[Tensor]:
        with torch.no_grad(), foveate.look(model) as sight:
            model(**inputs)
        return [on_cpu(MEASURES[measure](sight[name])) for name in sight.sites]

    expected = looked(inputs)
    with pretended_device():
        model.to(DEVICE)
        found = looked({name: value.to(DEVICE) for name, value in inputs.items()})
    assert len(found) == len(expected) > 2
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-4)


def test_change() -> None:
    model, inputs = sentence()
    with torch.no_grad():
        with foveate.look(model) as sight:
            model(**inputs)
        site = sight.sites[-1]
        with foveate.change(model, {site: Scale(0.0, 0)}):
            expected = model(**inputs).logits
        with pretended_device():
            model.to(DEVICE)
            with foveate.change(model, {site: Scale(0.0, 0)}):
                found = model(**{name: value.to(DEVICE) for name, value in inputs.items()}).logits
    torch.testing.assert_close(on_cpu(found), expected, atol=1e-5, rtol=1e-4)
