"""Every model on a pretended accelerator: forward, backward and step by step, with the numbers of the CPU."""

from collections.abc import Callable

import pytest
import torch
from further_families import FURTHER, build
from pretended import DEVICE, REAL, on_cpu, pretended_device
from torch import Tensor, nn
from variants import ELSEWHERE, PRESETS, variants

pytestmark = pytest.mark.usefixtures("unchecked")  # tests/models checks the shapes of all of them

FIRST = {preset.family: name for name, preset in reversed(PRESETS.items())}
"""A preset of each family, whose choices are all tried."""

VARIANTS = [one for one in variants() if not one.changed or one.preset in FIRST.values()]


FAMILIES: dict[str, tuple[Callable[[], nn.Module], dict[str, Tensor]]] = {
    **{one.preset: (one.build, one.inputs) for one in VARIANTS if not one.changed and one.preset in FIRST.values()},
    **{family: (lambda family=family: build(family), inputs()) for family, (_, _, inputs) in FURTHER.items()},
}
"""A model of each family, and its inputs."""


def draws(make: Callable[[], nn.Module], inputs: dict[str, Tensor]) -> bool:
    """Whether a model in training draws random numbers, of which a real device has others than the CPU."""
    found = []
    for seed in (1, 2):
        model = make().train()
        torch.manual_seed(seed)
        with torch.no_grad():
            found.append(model(**inputs).logits)
    return not torch.equal(*found)


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
        if not (REAL and draws(variant.build, variant.inputs)):
            torch.testing.assert_close(on_cpu(logits), expected, atol=1e-4, rtol=1e-4)
        logits.square().sum().backward()
        gradients = [part.grad for part in model.parameters() if part.grad is not None]
        assert gradients
        assert all(one.device.type == DEVICE.type for one in gradients)


def test_every_family_is_here() -> None:
    assert FURTHER.keys() == ELSEWHERE
    assert len(FAMILIES) == len({preset.family for preset in PRESETS.values()})


@pytest.mark.parametrize("family", FURTHER)
def test_forward_and_backward_of_further_families(family: str) -> None:
    """Those whose inputs are not the rows of `variants`."""
    make, inputs = FAMILIES[family]
    model = make().train()
    torch.manual_seed(1)
    expected = model(**inputs).logits.detach()
    with pretended_device():
        model = make().train().to(DEVICE)
        torch.manual_seed(1)
        logits = model(**on_device(inputs)).logits
        if not (REAL and draws(make, inputs)):
            torch.testing.assert_close(on_cpu(logits), expected, atol=1e-4, rtol=1e-4)
        logits.square().sum().backward()
        gradients = [part.grad for part in model.parameters() if part.grad is not None]
        assert gradients
        assert all(one.device.type == DEVICE.type for one in gradients)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_mixed_precision(family: str, dtype: torch.dtype) -> None:
    """Under autocast a family gives about what it gives in single precision, and a scaled loss gives all gradients."""
    make, inputs = FAMILIES[family]
    model = make().train()
    torch.manual_seed(1)
    with torch.no_grad():
        expected = model(**inputs).logits
    with pretended_device():
        model = make().train().to(DEVICE)
        torch.manual_seed(1)
        with torch.autocast(DEVICE.type, dtype):
            logits = model(**on_device(inputs)).logits
        (logits.float().square().mean() * 2.0**4).backward()
        gradients = [part.grad for part in model.parameters() if part.grad is not None]
        assert all(one.dtype == torch.float32 and bool(one.isfinite().all()) for one in gradients)
        found = on_cpu(logits).float()
    assert (REAL and draws(make, inputs)) or float((found - expected).norm() / expected.norm()) < 0.1


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
