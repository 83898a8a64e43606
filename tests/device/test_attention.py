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

import test_flex_kernel
import test_point_kernel as feature_maps
from grid import BIASES, MASKS, SCORES, Problem, problem

from foveate.attention import (
    ContextualPosition,
    Entmax,
    Features,
    Hard,
    Linear,
    Monotonic,
    MultiToken,
    Selection,
    Sigmoid,
    Soft,
    SoftmaxPlusOne,
    Sparsemax,
    TalkingHeads,
    TopK,
    attend,
    causal,
    positive,
)
from foveate.attention.kernels import TABLE
from foveate.attention.linear import CHUNK
from foveate.attention.selection import Weighing

KERNELS = ("eager", "blocked", "sdpa", "rows")
"""The kernels for scores of keys; those for feature maps, for sums and for compilers have tests of their own."""

SELECTIONS: dict[str, Selection] = {
    "hard": Hard(),
    "monotonic": Monotonic(),
    "sinks": Soft(torch.randn(3)),
    "sigmoid": Sigmoid(),
    "entmax": Entmax(),
    "sparsemax": Sparsemax(),
    "top": TopK(3),
    "plus one": SoftmaxPlusOne(),
    "talking heads": TalkingHeads(3),
    "contextual position": ContextualPosition(5, 4),
    "multi-token": MultiToken(3, 2, 3),
}

CALLS = [
    *(("scaled dot", mask, "none") for mask in MASKS),
    *(("scaled dot", "none", bias) for bias in BIASES),
    *((score, "none", "none") for score in SCORES),
]
"""Each score, mask and bias at least once: what every selection is tried with."""


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


def compare(p: Problem, kernel: str, select: Selection | None = None) -> bool:
    """Checks that a kernel gives the CPU's numbers on the device, where nothing is read; whether it serves the call."""
    options = {} if select is None else {"select": select}
    torch.manual_seed(3)
    try:
        expected = solve(p, kernel, **options)
    except ValueError as error:
        if "does not serve" not in str(error):
            raise
        return False
    with pretended_device() as crossings:
        own = Problem(**{name: moved(part) for name, part in vars(p).items()})
        options = {name: moved(part) for name, part in options.items()}
        crossings.clear()
        torch.manual_seed(3)
        found = solve(own, kernel, **options)
        assert not crossings
    assert found.keys() == expected.keys()
    for name, tensor in found.items():
        torch.testing.assert_close(on_cpu(tensor), expected[name], atol=1e-4, rtol=1e-4)
    return True


def test_every_kernel_and_selection_is_here() -> None:
    assert {kernel.name for kernel in TABLE} == {*KERNELS, "few", "flex", "points", "chunks"}
    kinds, known = list(Selection.__subclasses__()), {type(select) for select in SELECTIONS.values()} | {Soft, Linear}
    for kind in kinds:
        kinds += kind.__subclasses__()
    own = {kind for kind in kinds if kind.__module__.startswith("foveate.attention") and kind.__name__[0] != "_"}
    assert own - {Weighing} == known


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("score", SCORES)
def test_kernels(score: str, bias: str) -> None:
    """By each kernel that serves them: a third of all triples, in which each score, bias and mask meets each other."""
    first = [*SCORES].index(score) + [*BIASES].index(bias)
    for mask in [*MASKS][-first % 3 :: 3]:
        p = problem("heads", score, mask, bias)
        served = {kernel for kernel in KERNELS if compare(p, kernel)}
        assert served >= {"eager", "blocked", "rows"}
        assert ("sdpa" in served) >= (score in ("dot", "scaled dot") and bias == "none")


@pytest.mark.skipif(bool(REAL), reason="a real device draws other numbers")
@pytest.mark.parametrize("select", SELECTIONS)
def test_selections(select: str) -> None:
    for number, (score, mask, bias) in enumerate(CALLS):
        p = problem("heads", score, mask, bias)
        kernels = ("eager", "rows") if number % 2 else ("rows", "eager")  # the second serves where the first does not
        assert any(compare(p, kernel, SELECTIONS[select]) for kernel in kernels), (score, mask, bias)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kernel", ["chunks", "rows"])
def test_sums(kernel: str, normalize: bool) -> None:
    """Linear attention over more than one chunk."""
    q, k, v = (torch.randn(2, 3, CHUNK + 7, 5).requires_grad_() for _ in range(3))
    p = Problem(q, k, v, Features(positive), causal(), None, torch.randn(2, 3, CHUNK + 7, 5), torch.empty(0))
    assert compare(p, kernel, Linear(normalize))


@pytest.mark.usefixtures("unchecked")
def test_points() -> None:
    given = [part.float().requires_grad_() for part in feature_maps.problem()]
    expected = torch.autograd.grad(feature_maps.attended(*given, kernel="points").sum(), given)
    with pretended_device() as crossings:
        own = [moved(part) for part in given]
        crossings.clear()
        found = torch.autograd.grad(feature_maps.attended(*own, kernel="points").sum(), own)
        assert not crossings
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(on_cpu(one), other, atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile", "ignore:Dynamo")
def test_flex(monkeypatch: pytest.MonkeyPatch) -> None:
    """FlexAttention with all masks and biases: compiled on a real device, and on the CPU where there is none, since
    torch has no such kernel for a pretended one."""
    device = DEVICE if REAL else torch.device("cpu")
    if not REAL:
        monkeypatch.setattr("foveate.attention.kernels.flex.compiles_attention", lambda kind: True)
    biases = test_flex_kernel.random_biases()
    calls = [(mask, "none") for mask in test_flex_kernel.MASKS if mask != "none"]
    calls += [("window", bias) for bias in biases]
    for mask, bias in calls if REAL else calls[::4]:
        parts, form, added = test_flex_kernel.drawn(), test_flex_kernel.MASKS[mask], biases[bias]
        expected = attend(*parts, mask=form, bias=added, kernel="eager")
        with torch.compiler.set_stance("default" if REAL else "force_eager"):
            own = [part.to(device) for part in parts]
            found = (
                attend(*own, mask=moved(form), bias=moved(added), kernel="flex")
                if REAL
                else attend(*parts, mask=form, bias=added, kernel="flex")
            )
        torch.testing.assert_close(found.cpu(), expected, atol=1e-3 if REAL else 1e-5, rtol=1e-3)


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
