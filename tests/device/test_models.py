"""Every model on a pretended accelerator: forward, backward and step by step, with the numbers of the CPU."""

import pytest
import torch
from pretended import DEVICE, on_cpu, pretended_device
from torch import Tensor
from variants import PRESETS, variants

pytestmark = pytest.mark.usefixtures("unchecked")  # tests/models checks the shapes of all of them

FIRST = {preset.family: name for name, preset in reversed(PRESETS.items())}
"""A preset of each family, whose choices are all tried."""

VARIANTS = [one for one in variants() if not one.changed or one.preset in FIRST.values()]


def on_device(values: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.to(DEVICE) for name, value in values.items()}


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_forward_and_backward(variant) -> None:
    model = variant.build().train()
    torch.manual_seed(1)
    expected = model(**variant.inputs).logits.detach()
    with pretended_device():
        model.to(DEVICE)
        torch.manual_seed(1)
        logits = model(**on_device(variant.inputs)).logits
        assert logits.device.type == DEVICE.type
        torch.testing.assert_close(on_cpu(logits), expected, atol=1e-4, rtol=1e-4)
        logits.square().sum().backward()
        gradients = [part.grad for part in model.parameters() if part.grad is not None]
        assert gradients
        assert all(one.device.type == DEVICE.type for one in gradients)


@pytest.mark.parametrize("variant", [one for one in VARIANTS if one.writes], ids=str)
def test_step_by_step(variant) -> None:
    """A decoder's steps from a state that lies on the device; nothing of a step is read by the CPU."""
    model = variant.build()
    inputs = {name: value for name, value in variant.inputs.items() if not name.startswith("target")}
    target = variant.inputs["target"]

    def steps(inputs: dict[str, Tensor], tokens: Tensor, crossings: dict[str, int]) -> Tensor:
        state = model.start(**inputs)
        crossings.clear()
        return torch.stack([model.step(one, state) for one in tokens.unbind(1)], 1)

    with torch.inference_mode(False), torch.no_grad():
        expected = steps(inputs, target, {})
        with pretended_device() as crossings:
            model.to(DEVICE)
            found = steps(on_device(inputs), target.to(DEVICE), crossings)
            assert found.device.type == DEVICE.type
            assert not crossings, crossings
            torch.testing.assert_close(on_cpu(found), expected, atol=1e-4, rtol=1e-4)
