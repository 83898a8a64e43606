"""All kernels on a pretended accelerator, with every score, mask, bias and selection: the numbers of the CPU, and
nothing that the CPU waits for."""

import copy
import sys
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from pretended import DEVICE, REAL, on_cpu, pretended_device
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1] / "attention"))

from grid import BIASES, MASKS, SCORES, Problem, problem

from foveate.attention import Hard, Monotonic, attend

CALLS = [
    *(("scaled dot", mask, "none") for mask in MASKS),
    *(("scaled dot", "causal", bias) for bias in BIASES),
    *((score, "padding", "given") for score in SCORES),
]


def moved(part: Any) -> Any:
    """What belongs to a call, on the device."""
    if isinstance(part, Tensor):
        return part.detach().to(DEVICE).requires_grad_(part.requires_grad)
    if isinstance(part, nn.Module):
        return copy.deepcopy(part).to(DEVICE)
    if is_dataclass(part):
        return replace(part, **{one.name: moved(getattr(part, one.name)) for one in fields(part) if one.init})
    return type(part)(map(moved, part)) if isinstance(part, tuple) else part


def solve(p: Problem, kernel: str, **options: Any) -> dict[str, Tensor]:
    """The output and all gradients."""
    output = attend(p.queries, p.keys, p.values, p.score, p.mask, p.bias, kernel=kernel, **options)
    learned = p.learned
    gradients = torch.autograd.grad(output, [*learned.values()], p.to_output.to(output.dtype), allow_unused=True)
    named = zip(learned, gradients, strict=True)
    return {"output": output.detach(), **{name: one for name, one in named if one is not None}}


def serves(kernel: str, score: str, bias: str) -> bool:
    """Whether a kernel is asked for this: the fused one takes dot products and plain numbers to add."""
    return kernel != "sdpa" or (score in ("dot", "scaled dot") and bias == "none")


@pytest.mark.parametrize("kernel", ["eager", "blocked", "sdpa"])
@pytest.mark.parametrize(("score", "mask", "bias"), CALLS)
def test_kernels(kernel: str, score: str, mask: str, bias: str) -> None:
    if not serves(kernel, score, bias):
        return
    p = problem("heads", score, mask, bias)
    expected = solve(p, kernel)
    with pretended_device() as crossings:
        own = Problem(**{name: moved(part) for name, part in vars(p).items()})
        crossings.clear()
        found = solve(own, kernel)
        assert not crossings
    assert found.keys() == expected.keys()
    for name, tensor in found.items():
        torch.testing.assert_close(on_cpu(tensor), expected[name], atol=1e-5, rtol=1e-4)


@pytest.mark.skipif(bool(REAL), reason="a real device draws other numbers")
@pytest.mark.parametrize("select", [Hard(), Monotonic()], ids=["hard", "monotonic"])
def test_selections(select: Any) -> None:
    p = problem("heads", "scaled dot", "none", "none")
    torch.manual_seed(3)
    expected = solve(p, "auto", select=select)
    with pretended_device() as crossings:
        own = Problem(**{name: moved(part) for name, part in vars(p).items()})
        crossings.clear()
        torch.manual_seed(3)
        found = solve(own, "auto", select=select)
        assert not crossings
    torch.testing.assert_close(on_cpu(found["output"]), expected["output"], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("kernel", ["eager", "blocked", "sdpa"])
def test_mixed_precision(kernel: str, dtype: torch.dtype) -> None:
    """Autocast of the device acts on every kernel, and a loss scaler takes gradients through it."""
    p = problem("heads", "scaled dot", "causal", "none")
    expected = solve(p, kernel)
    with pretended_device():
        own = Problem(**{name: moved(part) for name, part in vars(p).items()})
        with torch.autocast(DEVICE.type, dtype):
            output = attend(own.queries, own.keys, own.values, own.score, own.mask, kernel=kernel)
        assert output.dtype == dtype
        scale = 2.0**10
        (gradient,) = torch.autograd.grad(output.float(), own.queries, own.to_output * scale)
        torch.testing.assert_close(on_cpu(output.detach()).float(), expected["output"], atol=3e-2, rtol=3e-2)
        torch.testing.assert_close(on_cpu(gradient) / scale, expected["queries"], atol=5e-2, rtol=5e-2)
