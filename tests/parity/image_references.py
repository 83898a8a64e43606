"""The comparison of image models with torchvision and timm: the same numbers from the same weights."""

from collections.abc import Callable

import torch
from references import timm, torchvision
from torch import Tensor, nn

__all__ = [
    "assert_same",
    "assert_same_logits",
    "assert_same_state",
    "gradients",
    "inverse",
    "rename",
    "scramble",
    "timm",
    "torchvision",
]


def rename(state: dict[str, Tensor], names: dict[str, str]) -> dict[str, Tensor]:
    """The state of a model with its parts named as in `names`, which has all modules of the state, or a parameter's own
    name where the other model has it elsewhere, and nothing else."""
    used, found = set(), {}
    for key, value in state.items():
        module, _, leaf = key.rpartition(".")
        used.add(key if key in names else module)
        found[names[key] if key in names else f"{names[module]}.{leaf}"] = value
    assert used == names.keys()
    return found


def assert_same(model: nn.Module, reference: nn.Module, names: dict[str, str], *sizes: tuple[int, int]) -> None:
    """Both compute the same logits of images of these sizes and the same gradients, in evaluation and in training.

    `names` has the reference's name for each module of the model that has weights or statistics.
    """
    model.double(), reference.double()
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if "norm" in name and value.is_floating_point():  # ones and zeros would hide what is not applied
                value.uniform_(0.5, 1.5)
    theirs = rename(model.state_dict(), names)
    assert theirs.keys() == reference.state_dict().keys()
    reference.load_state_dict(theirs)
    assert rename(theirs, {other: ours for ours, other in names.items()}).keys() == model.state_dict().keys()
    for height, width in sizes:
        for mode in (False, True):
            model.train(mode), reference.train(mode)
            model.zero_grad(), reference.zero_grad()
            pixels = torch.randn(3, 3, height, width, dtype=torch.float64)
            ours, other = pixels.clone().requires_grad_(), pixels.clone().requires_grad_()
            found, expected = model(ours), reference(other)
            found = torch.cat([found.logits, *found.auxiliary])
            if isinstance(expected, tuple):  # auxiliary classifiers, the last one first
                logits, *auxiliary = expected
                expected = torch.cat([logits, *reversed(auxiliary)])
            _close(found, expected)
            weights = torch.randn_like(expected)
            (found * weights).sum().backward()
            (expected * weights).sum().backward()
            _close(ours.grad, other.grad)
            wanted = {name: parameter.grad for name, parameter in reference.named_parameters()}
            for name, gradient in rename(gradients(model), _of_parameters(model, names)).items():
                _close(gradient, wanted[name])
    for name, value in rename(model.state_dict(), names).items():
        _close(value, reference.state_dict()[name])


def assert_same_logits(model: nn.Module, logits: Callable[[Tensor], Tensor], *sizes: tuple[int, int]) -> None:
    """Both compute the same logits of images of these sizes and the same gradients of the pixels.

    The gradients of the parameters add up in both.
    """
    for height, width in sizes:
        pixels = torch.randn(3, 3, height, width, dtype=torch.float64)
        ours, other = pixels.clone().requires_grad_(), pixels.clone().requires_grad_()
        found, expected = model(ours).logits, logits(other)
        torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)
        weights = torch.randn_like(expected)
        (found * weights).sum().backward()
        (expected * weights).sum().backward()
        torch.testing.assert_close(ours.grad, other.grad, atol=1e-9, rtol=0)


def scramble(model: nn.Module) -> nn.Module:
    """Random numbers for all parameters: norms that start at 1 and biases at 0 would hide mistakes."""
    with torch.no_grad():
        for parameter in model.double().parameters():
            parameter.normal_(std=0.3)
    return model


def assert_same_state(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in found.items():
        torch.testing.assert_close(
            value, expected[name], atol=1e-9, rtol=0, msg=lambda text, name=name: f"{name}: {text}"
        )


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def inverse(names: dict[str, str]) -> dict[str, str]:
    return {theirs: ours for ours, theirs in names.items()}


def _of_parameters(model: nn.Module, names: dict[str, str]) -> dict[str, str]:
    parts = {part for name, _ in model.named_parameters() for part in (name, name.rpartition(".")[0])}
    return {part: name for part, name in names.items() if part in parts}


def _close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-7, rtol=1e-7)
