"""Every kernel against the eager one in double precision, over a grid of shapes, masks, biases, scores and dtypes."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from foveate.attention import (
    Additive,
    Biaffine,
    Dot,
    LinearDistance,
    RelativeKeys,
    RelativePosition,
    ScaledDot,
    attend,
    attend_full,
    causal,
    padding,
    segments,
    window,
)
from foveate.attention.kernels import TABLE, blocked, needs, sdpa

B, H, T, S, D, V = 2, 3, 13, 17, 7, 11
SHAPES = {
    "heads": ((B, H, T, D), (B, H, S, D), (B, H, S, D)),
    "one query": ((B, H, 1, D), (B, H, S, D), (B, H, S, D)),
    "one key": ((B, H, T, D), (B, H, 1, D), (B, H, 1, D)),
    "no head": ((B, T, D), (B, S, D), (B, S, D)),
    "no batch": ((T, D), (S, D), (S, D)),
    "grouped": ((B, 3, 2, T, D), (B, 3, 1, S, D), (B, 3, 1, S, D)),
    "broadcast keys": ((B, H, T, D), (S, D), (1, 1, S, D)),
    "broadcast queries": ((T, D), (B, H, S, D), (B, H, S, D)),
    "values of another width": ((B, H, T, D), (B, H, S, D), (B, H, S, V)),
}
MASKS: dict[str, Callable[[int, int], object]] = {
    "none": lambda t, s: None,
    "causal": lambda t, s: causal(),
    "causal from a start": lambda t, s: causal(3),
    "padding": lambda t, s: padding(torch.tensor([s, max(1, s - 5)])),
    "padding of all": lambda t, s: padding(torch.tensor([0, s])),
    "causal and padding": lambda t, s: causal(2) & padding(torch.tensor([max(1, s - 3), 2])),
    "window": lambda t, s: window(2),
    "window and causal": lambda t, s: window(3, start=1) & causal(1),
    "window that misses": lambda t, s: window(1, start=s - 3),
    "segments": lambda t, s: segments(torch.tensor([4, 9]), torch.tensor([11, 3])),
    "given": lambda t, s: torch.rand(B, 1, t, s, generator=torch.Generator().manual_seed(5)) > 0.4,
    "given rows": lambda t, s: torch.arange(t)[:, None] % 3 != torch.arange(s) % 2,
}


class GivenBias(nn.Module):
    """A plain tensor as a bias, learned or not."""

    def __init__(self, learned: bool) -> None:
        super().__init__()
        self.tensor = nn.Parameter(torch.randn(H, T, S), requires_grad=learned)


BIASES: dict[str, Callable[[], object]] = {
    "given": lambda: GivenBias(False),
    "given and learned": lambda: GivenBias(True),
    "linear distance": lambda: LinearDistance(torch.tensor([0.5, 0.25, 0.125])),
    "relative position": lambda: RelativePosition(H, 3),
    "relative keys": lambda: RelativeKeys(D, 3),
}
SCORES: dict[str, Callable[[], object]] = {
    "scaled dot": ScaledDot,
    "dot": Dot,
    "factor": lambda: ScaledDot(0.3),
    "biaffine": lambda: Biaffine(D, D),
    "additive": lambda: Additive(D, D, D),
    "additive relu": lambda: Additive(D, D, D, torch.relu),
}


@dataclass
class Case:
    """What one attention call is given, by the names above."""

    shape: str = "heads"
    mask: str = "none"
    bias: str | None = None
    score: str = "scaled dot"
    full: bool = False
    """Whether the log-sum-exp takes part in what is differentiated."""

    def __str__(self) -> str:
        return f"{self.shape}, {self.mask}, {self.bias}, {self.score}{', full' * self.full}"


CASES = [
    *(Case(shape, mask) for shape in SHAPES for mask in ("none", "causal", "causal from a start", "window")),
    *(Case(shape, mask) for shape in ("heads", "no head", "grouped", "one query") for mask in MASKS if "padding" in mask),
    *(Case("heads", mask, full=full) for mask in MASKS for full in (False, True)),
    *(Case("heads", mask, bias) for mask in ("none", "causal and padding", "given") for bias in BIASES),
    *(Case("heads", mask, None, score) for mask in ("none", "padding of all", "window") for score in SCORES),
    *(Case("heads", "window and causal", bias, score, True) for bias in BIASES for score in ("additive", "biaffine")),
    *(Case(shape, "none", None, "additive") for shape in SHAPES),
]
CASES = list({str(case): case for case in CASES}.values())


def compute(case: Case, kernel: str, dtype: torch.dtype, inputs_in: torch.dtype) -> dict[str, Tensor]:
    """Output, log-sum-exp and all gradients of a case computed in `dtype`, from inputs rounded to `inputs_in`."""
    torch.manual_seed(11)
    shapes = SHAPES[case.shape]
    q, k, v = (torch.randn(shape).to(inputs_in).to(dtype).requires_grad_() for shape in shapes)
    score = SCORES[case.score]()
    bias = None if case.bias is None else BIASES[case.bias]()
    modules = [part for part in (score, bias) if isinstance(part, nn.Module)]
    for module in modules:
        for parameter in module.parameters():
            parameter.data = torch.randn(parameter.shape).to(inputs_in).to(dtype)
    learned = {f"{n}.{name}": p for n, m in enumerate(modules) for name, p in m.named_parameters() if p.requires_grad}
    given = bias.tensor if isinstance(bias, GivenBias) else bias
    if isinstance(given, LinearDistance):
        given = LinearDistance(given.slopes.to(dtype))
    mask = MASKS[case.mask](q.shape[-2], k.shape[-2])
    with torch.set_grad_enabled(case.full):
        attended = attend_full(q, k, v, score, mask, given, kernel=kernel)
    output = attended.output if case.full else attend(q, k, v, score, mask, given, kernel=kernel)
    to_output = torch.randn(output.shape).to(dtype)
    loss = (output * to_output).sum()
    finite = attended.log_sum_exp > -torch.inf
    if case.full:
        loss = loss + attended.log_sum_exp[finite].sin().sum()
    loss.backward()
    found = {"output": output, "log_sum_exp": attended.log_sum_exp.masked_fill(~finite, 0.0)}
    found |= {"nowhere": (~finite).to(dtype)}
    found |= {f"to {name}": part.grad for name, part in {"q": q, "k": k, "v": v, **learned}.items()}
    # A gradient is a sum of such products; where the softmax is saturated, a difference of nearly equal ones.
    found |= {"terms": (to_output.abs() @ v.abs().mT).amax() * torch.cat([q.flatten(), k.flatten()]).abs().amax()}
    return {name: value.detach().double() for name, value in found.items() if value is not None}


def error(found: dict[str, Tensor], exact: dict[str, Tensor], name: str) -> float:
    assert found[name].shape == exact[name].shape
    assert found[name].isfinite().all(), f"{name} is not finite"
    return float((found[name] - exact[name]).abs().max())


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks so small that every call takes several, of uneven sizes."""
    monkeypatch.setattr(blocked, "BLOCK", 150)
    monkeypatch.setattr(sdpa, "BLOCK", 70)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kernel", ["sdpa", "blocked"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_kernel_errs_more_than_twice_as_much_as_the_eager_one(case: Case, kernel: str, dtype: torch.dtype) -> None:
    try:
        found = compute(case, kernel, dtype, dtype)
    except ValueError as refusal:
        assert kernel == "sdpa"
        assert "does not serve" in str(refusal)
        pytest.skip("not served")
    eager = compute(case, "eager", dtype, dtype)
    exact = compute(case, "eager", torch.float64, dtype)
    assert found.keys() == exact.keys()
    for name, truth in exact.items():
        if name == "terms":
            continue
        # An eager result that is right by luck (a gradient that is exactly 0, say) must not forbid the last bits of
        # another order of summation: 2 units in the last place of the numbers that are summed.
        size = float(exact["terms"] if name.startswith("to ") else truth.abs().max())
        floor = 2 * torch.finfo(dtype).eps * size
        mine, eagers = error(found, exact, name), error(eager, exact, name)
        assert mine <= 2 * eagers + floor, f"{name}: {mine} against {eagers} and {floor}"


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kernel", ["eager", "sdpa", "blocked"])
@pytest.mark.parametrize("score", ["scaled dot", "additive"])
def test_a_row_that_may_look_nowhere_gives_zeros_and_zero_gradients(kernel: str, score: str) -> None:
    if kernel == "sdpa" and score == "additive":
        pytest.skip("not served")
    torch.manual_seed(3)
    q, k, v = (torch.randn(shape, requires_grad=True) for shape in SHAPES["heads"])
    mask = torch.ones(B, 1, T, S, dtype=torch.bool)
    mask[1, :, 5] = False
    mask[0, :, :, 2] = False
    function = SCORES[score]()
    output = attend(q, k, v, function, mask, kernel=kernel)
    output.sum().backward()
    assert (output[1, :, 5] == 0).all()
    assert (output[0].abs().sum(-1) > 0).all()
    with torch.no_grad():
        log_sum_exp = attend_full(q, k, v, function, mask, kernel=kernel).log_sum_exp
    assert (log_sum_exp[1, :, 5] == -torch.inf).all()
    assert log_sum_exp[0].isfinite().all()
    assert (q.grad[1, :, 5] == 0).all()
    assert (k.grad[0, :, 2] == 0).all()
    assert (v.grad[0, :, 2] == 0).all()
    assert all(part.grad.isfinite().all() for part in (q, k, v))


@pytest.mark.parametrize("kernel", ["eager", "sdpa", "blocked"])
def test_without_keys_there_is_nothing_to_see(kernel: str) -> None:
    attended = attend_full(torch.randn(2, 3, 5, 7), torch.randn(2, 3, 0, 7), torch.randn(2, 3, 0, 7), kernel=kernel)
    assert attended.output.shape == (2, 3, 5, 7)
    assert (attended.output == 0).all()
    assert (attended.log_sum_exp == -torch.inf).all()


def test_every_need_is_served_by_a_kernel_of_the_table() -> None:
    from foveate.attention.kernels import NEEDS

    served = frozenset(itertools.chain.from_iterable(kernel.serves for kernel in TABLE))
    assert served == frozenset(NEEDS)
    assert needs.__doc__
