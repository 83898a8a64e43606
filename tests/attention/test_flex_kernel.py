"""The kernel of FlexAttention: what it computes on a CPU, uncompiled and compiled, and which calls it serves."""

import itertools

import pytest
import torch
from torch import Tensor

from foveate import accelerator
from foveate.attention import (
    BucketedPosition,
    LinearDistance,
    LinearGridDistance,
    RelativeGridPosition,
    RelativePatchPosition,
    RelativePosition,
    ScaledDot,
    SoftCapped,
    attend,
    causal,
    intercept,
    leading,
    left_padding,
    longformer,
    padding,
    strided,
    window,
)
from foveate.attention.biases import PositionalBias
from foveate.attention.kernels.flex import SIDE, block_mask

MASKS = {
    "none": None,
    "window": window(3),
    "window later": window(11, 5) & causal(5),
    "causal earlier": causal(-3),
    "dilated": window(40) & strided(3),
    "longformer": longformer(5, 2),
    "prefix": causal() | leading(9),
    "padded window": window(60) & padding(torch.tensor([171, 30])) & causal(),
    "padding first": causal() & window(200) & left_padding(torch.tensor([0, 31])),
}

BIASES = {
    "none": None,
    "linear distance": LinearDistance(torch.rand(3)),
    "linear grid distance": LinearGridDistance(torch.rand(3), columns=12),
    "grid position": RelativeGridPosition(3, 4).with_grids((15, 10), (19, 9)).requires_grad_(False),
    "patch position": RelativePatchPosition(3, 4).requires_grad_(False),
    "relative position": RelativePosition(3, 7).requires_grad_(False),
    "bucketed position": BucketedPosition(3, 8, 5, both_sides=True).requires_grad_(False),
}


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the CPU were a device that compiles attention: it computes the same without."""
    monkeypatch.setattr("foveate.attention.kernels.flex.compiles_attention", lambda kind: kind == "cpu")


def drawn(queries: int = 150, keys: int = 171, width: int = 16) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = (torch.randn(2, 3, count, width) for count in (queries, keys, keys))
    return q, k, torch.cat([v, v], -1)


def random_biases() -> dict[str, PositionalBias | None]:
    """The biases, with learned numbers that are not zero."""
    for table in BIASES.values():
        if isinstance(table, RelativePosition | RelativeGridPosition):
            torch.nn.init.normal_(table.table)
    return BIASES | {"patch position": BIASES["patch position"].with_grids((10, 17))}


class Together(PositionalBias):
    """The sum of all biases: they are compiled at once, since each form takes seconds."""

    def __init__(self) -> None:
        self.parts = [bias for bias in random_biases().values() if bias is not None]

    def at(self, heads: Tensor | slice, queries: Tensor, keys: Tensor) -> Tensor:
        return sum(part.at(heads, queries, keys) for part in self.parts)

    def shape(self) -> torch.Size:
        return torch.Size((3, 1, 1))


def kernels(*parts: Tensor, **call: object) -> tuple[Tensor, list[str]]:
    """The output of a call, and the names of the kernels that were chosen."""
    names: list[str] = []
    with intercept(lambda call, kernel: (names.append(kernel.name), kernel.attend(call))[1]):
        return attend(*parts, **call), names


@pytest.mark.usefixtures("compiles", "unchecked")
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_masks_and_biases() -> None:
    biases = random_biases()
    turns = [*itertools.product(MASKS, BIASES)][1::5]  # of every fifth pair, which are all masks and all biases
    assert {name for name, _ in turns} == MASKS.keys()
    assert {name for _, name in turns} == BIASES.keys()
    for name, bias_name in turns:
        parts, mask, bias = drawn(), MASKS[name], biases[bias_name]
        with torch.compiler.set_stance("force_eager"):  # torch traces it even on a CPU, which takes seconds
            found, names = kernels(*parts, mask=mask, bias=bias)
        assert names == ["flex"], (name, bias_name)
        expected = attend(*parts, mask=mask, bias=bias, kernel="eager")
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5, msg=f"{name}, {bias_name}")


@pytest.mark.usefixtures("compiles", "unchecked")
@pytest.mark.filterwarnings("ignore:Dynamo", "ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_all_masks_and_biases_are_compiled(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Traced as a whole, and compiled for lengths that are known: for others torch 2.13 confuses the names of numbers
    in what it writes for a CPU."""
    from torch.nn.attention.flex_attention import flex_attention

    if backend == "inductor" and not accelerator.compiles("cpu"):
        pytest.skip("torch finds no compiler for the CPU")
    compiled = torch.compile(flex_attention, fullgraph=True, dynamic=backend == "eager", backend=backend)
    monkeypatch.setattr("foveate.attention.kernels.flex._flex_attention", lambda kind: compiled)
    either = window(11, 5) & causal(5) | window(40) & strided(3) | longformer(5, 2) | causal() & leading(9)
    mask, parts, bias = padding(torch.tensor([171, 30])), drawn(), Together()
    mask &= window(11, 5) if backend == "inductor" else either & left_padding(torch.tensor([0, 3]))
    bias = bias.parts[3] if backend == "inductor" else bias  # a compiler takes seconds for each part
    with torch.no_grad():
        found, names = kernels(*parts, mask=mask, bias=bias)
        expected = attend(*parts, mask=mask, bias=bias, kernel="eager")
    assert names == ["flex"]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("compiles")
def test_other_calls_are_left_to_other_kernels() -> None:
    parts = drawn()
    learned = RelativePosition(3, 7)
    calls = [
        {},
        {"mask": causal()},
        {"mask": padding(torch.tensor([171, 9]))},
        {"mask": window(3) & (torch.rand(150, 171) < 0.5)},
        {"mask": window(3), "dropout": 0.1},
        {"mask": window(3), "score": SoftCapped(ScaledDot(), 5.0)},
        {"bias": torch.randn(150, 171)},
        {"bias": learned},
        {"bias": LinearDistance(torch.rand(1))},
    ]
    for call in calls:
        assert "flex" not in kernels(*parts, **call)[1], call
    assert kernels(*drawn(queries=SIDE - 1), mask=window(3))[1] != ["flex"]
    assert kernels(*drawn(width=8), mask=window(3))[1] != ["flex"]


def test_a_device_that_compiles_no_attention_is_refused() -> None:
    """On the CPU, which has no backward pass of it, and on any device that is not known to have one."""
    for device in ("cpu", "meta"):
        parts = [part.to(device).requires_grad_() for part in drawn()]
        with pytest.raises(ValueError, match="the flex kernel serves a mask of positions other than the causal one"):
            attend(*parts, mask=window(3), kernel="flex")
        assert kernels(*parts, mask=window(3))[1] != ["flex"]


@pytest.mark.parametrize("mask", [window(70) & causal(3), longformer(100, 2)], ids=["window", "longformer"])
def test_blocks_are_those_of_torch(mask: object) -> None:
    from torch.nn.attention.flex_attention import create_block_mask

    found = block_mask(mask, 500, 650, torch.device("cpu"))
    expected = create_block_mask(lambda b, h, q, k: mask.allows(q, k), None, None, 500, 650, device="cpu")
    assert torch.equal(found.to_dense(), expected.to_dense())
    assert torch.equal(found.full_kv_num_blocks, expected.full_kv_num_blocks)
    assert 0 < int(found.to_dense().sum()) < found.to_dense().numel()
    same = mask.parts[0] & mask.parts[1] if "&" in mask.sign else longformer(100, 2)
    assert block_mask(same, 500, 650, torch.device("cpu")) is found  # once for all layers, and for all steps
