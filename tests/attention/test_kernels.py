"""Every kernel computes what the eager one does: over shapes, masks, biases, scores and number formats, both passes.

The measure is the eager kernel in double precision. A kernel may err at most twice as much as the eager kernel does in
the same number format. The largest of a few errors is partly chance, and where the eager kernel happens to hit the
right number any rounding would be too much; so one rounding of the largest number is allowed on top, and the sums,
which every kernel makes in single precision at least, may differ by SUMS such roundings: two millionths. The eager
kernel itself may err by EAGER roundings of the largest number, and its gradients by four times as many.
"""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from grid import BIASES, MASKS, SCORES, SHAPES, Problem, every, problem, solve
from torch import Tensor, nn

from foveate.attention import Additive, LinearDistance, Score, attend, attend_full
from foveate.attention.kernels import blocked, sdpa

SUMS, EAGER = 16, 12

KINDS = ("eager", "blocked")


def check(found: dict[str, Tensor], eager: dict[str, Tensor], exact: dict[str, Tensor], dtype: torch.dtype) -> None:
    """Each tensor errs at most twice as much as the eager kernel's, up to a few roundings."""
    assert found.keys() == exact.keys()
    for name, tensor in found.items():
        assert tensor.shape == exact[name].shape, name
        assert torch.equal(tensor.isinf(), exact[name].isinf()), name
        roundings = 2 * torch.finfo(dtype).eps + SUMS * min(torch.finfo(dtype).eps, torch.finfo(torch.float32).eps)
        allowed = 2 * error(eager[name], exact[name]) + roundings * largest(exact[name])
        assert error(tensor, exact[name]) <= allowed, f"{name}: {error(tensor, exact[name])} above {allowed}"


def check_eager(eager: dict[str, Tensor], exact: dict[str, Tensor], dtype: torch.dtype, score: str) -> None:
    """What all others are compared with errs little itself; but rounding may put a number on the other side of a
    rectifier's kink, where the gradient is another."""
    for name, tensor in eager.items():
        gradient = name.startswith("gradient")
        if not gradient or "relu" not in score:
            roundings = error(tensor, exact[name]) / (torch.finfo(dtype).eps * largest(exact[name]))
            assert roundings <= (4 * EAGER if gradient else EAGER), f"{name}: {roundings:.1f} roundings"


def largest(exact: Tensor) -> Tensor:
    """The size of the numbers: not below 1, that of what the sums are made of."""
    return exact.masked_fill(exact.isinf(), 0.0).abs().amax().clamp(min=1)


def error(found: Tensor, exact: Tensor) -> Tensor:
    """The largest difference; where both are -inf there is none."""
    return (found.double() - exact).masked_fill(exact.isinf(), 0.0).abs().amax()


@pytest.fixture
def six_by_six(monkeypatch: pytest.MonkeyPatch) -> Callable[[Problem], None]:
    """Makes the blocked kernel take about six queries and six keys of a problem at once: several blocks."""

    def shrink(p: Problem) -> None:
        monkeypatch.setattr(blocked, "BLOCK", 40 * p.to_log_sum_exp[..., 0].numel() * p.score.footprint(5))

    return shrink


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("shape", "mask", "bias", "score"), every(MASKS, BIASES, SCORES))
def test_blocked(shape, mask, bias, score, dtype, six_by_six):
    p = problem(shape, score, mask, bias).to(dtype)
    six_by_six(p)
    exact, eager = solve(p.to(torch.float64), "eager"), solve(p, "eager")
    check_eager(eager, exact, dtype, score)
    check(solve(p, "blocked"), eager, exact, dtype)


@pytest.mark.parametrize(("shape", "bias", "score"), every(BIASES, SCORES))
def test_blocked_under_autocast(shape, bias, score, six_by_six):
    p = problem(shape, score, "causal and padding", bias)
    six_by_six(p)
    exact, eager = solve(p.to(torch.float64), "eager"), solve(p, "eager", autocast=True)
    check_eager(eager, exact, torch.bfloat16, score)
    check(solve(p, "blocked", autocast=True), eager, exact, torch.bfloat16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("shape", "mask", "bias"), every(MASKS, BIASES))
def test_sdpa(shape, mask, bias, dtype, monkeypatch):
    p = problem("heads" if shape == "other values" else shape, "scaled dot", mask, bias).to(dtype)
    monkeypatch.setattr(sdpa, "BLOCK", 3 * p.keys.shape[-2])  # three queries at a time
    double = p.to(torch.float64)
    backward = not any(name.startswith("bias") for name in p.learned)
    exact, eager = (solve(part, "eager", backward, full=False) for part in (double, p))
    check(solve(p, "sdpa", backward, full=False), eager, exact, dtype)
    exact, eager = (solve(part, "eager", backward=False) for part in (double, p))
    check(solve(p, "sdpa", backward=False), eager, exact, dtype)


@pytest.mark.parametrize("kernel", ["blocked", "sdpa"])
@pytest.mark.parametrize("mask", ["none", "causal", "padding", "window"])
def test_under_autocast_all_kernels_give_the_same_type(kernel, mask, monkeypatch):
    p = problem("heads", mask=mask)
    monkeypatch.setattr(sdpa, "BLOCK", 3 * p.keys.shape[-2])
    exact, eager = (solve(part, "eager", full=False, autocast=part is p) for part in (p.to(torch.float64), p))
    found = solve(p, kernel, full=False, autocast=True)
    assert {name: part.dtype for name, part in found.items()} == {name: part.dtype for name, part in eager.items()}
    check(found, eager, exact, torch.bfloat16)


def test_gradients_never_pass_through_half_precision_on_a_cpu(monkeypatch):
    """PyTorch's fused kernel needs ten times as long there."""
    types, fused = [], sdpa._fused
    monkeypatch.setattr(
        sdpa, "_fused", lambda call, q, *rest, **more: types.append(q.dtype) or fused(call, q, *rest, **more)
    )
    p = problem("heads", mask="padding")
    solve(p, "sdpa", full=False, autocast=True)
    solve(p.to(torch.bfloat16), "sdpa", full=False)
    assert types == [torch.float32] * 2
    solve(p.to(torch.bfloat16), "sdpa", full=False, backward=False)
    assert types[2] == torch.bfloat16


def test_autocast_keeps_the_gradients_of_what_follows():
    """What the blocked kernel reads without gradients must not be what a later call, in the same context, learns by."""
    p = problem("heads", "additive relu")
    with torch.autocast("cpu", torch.bfloat16):
        attend(p.queries, p.keys, p.values, p.score, kernel="blocked")
        output = attend(p.queries, p.keys, p.values, p.score, kernel="eager")
    (gradient,) = torch.autograd.grad(output, [p.score.direction], p.to_output.to(output.dtype), allow_unused=True)
    assert gradient.any()


@pytest.mark.parametrize("kernel", ["blocked", "sdpa"])
@pytest.mark.parametrize("autocast", [False, True])
def test_a_bias_in_single_precision_is_not_rounded_to_half(kernel, autocast):
    """Near a distance of 1,000, bfloat16 counts in steps of 4."""
    q, k, v = (torch.randn(3, size, 5, dtype=torch.float32 if autocast else torch.bfloat16) for size in (7, 11, 11))
    bias = LinearDistance(torch.tensor([0.3, 0.7, 1.1]), start=1000)
    double = LinearDistance(bias.slopes.double(), start=1000)
    exact = {"output": attend(q.double(), k.double(), v.double(), bias=double, kernel="eager")}
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        eager = {"output": attend(q, k, v, bias=bias, kernel="eager")}
        for found in (attend(q, k, v, bias=bias, kernel=kernel), attend_full(q, k, v, bias=bias, kernel=kernel).output):
            assert found.dtype == torch.bfloat16
            check({"output": found}, eager, exact, torch.bfloat16)


def test_a_parameter_that_is_read_twice_has_one_gradient():
    """The sum of both."""
    shared = nn.Parameter(torch.randn(5))
    q, k, v = (torch.randn(size, 5) for size in (7, 11, 11))

    class Twice(Score):
        def block(self, queries, keys):
            return (queries * shared) @ (keys * shared).mT

        def tensors(self):
            return (shared, shared)

    found = [torch.autograd.grad(attend(q, k, v, Twice(), kernel=kernel).sum(), shared) for kernel in KINDS]
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)


def test_a_score_that_reads_one_side_only():
    """And gives numbers that lie in memory of others."""
    q, k, v = (torch.randn(size, 5, requires_grad=True) for size in (7, 11, 11))

    class Salience(Score):
        def block(self, queries, keys):
            return keys[..., :1].mT.expand(*queries.shape[:-1], -1)

    found = []
    for kernel in KINDS:
        output = attend(q, k, v, Salience(), kernel=kernel)
        found.append((output, *torch.autograd.grad(output.square().sum(), (q, k, v), materialize_grads=True)))
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", ["blocked", "sdpa"])
@pytest.mark.parametrize("changed", ["mask", "bias"])
def test_a_mask_that_is_written_over_before_the_backward_pass_is_told_of(kernel, changed, monkeypatch):
    monkeypatch.setattr(sdpa, "BLOCK", 30)
    monkeypatch.setattr(sdpa, "FEW", 3)
    q, k, v = (torch.randn(11, 5, requires_grad=True) for _ in range(3))
    numbers = {"mask": torch.rand(11, 11) < 0.7, "bias": torch.randn(11, 11)}
    output = attend(q, k, v, mask=numbers["mask"], bias=numbers["bias"], kernel=kernel)
    numbers[changed].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


@pytest.mark.parametrize("given", ["mask", "bias"])
def test_other_devices_are_given_rows_that_lie_densely(given, monkeypatch):
    """Where all keys have the same number; the meta device stands for them."""
    masks, own = [], sdpa._mask
    monkeypatch.setattr(sdpa, "_mask", lambda *block: masks.append(own(*block)) or masks[-1])
    q, k, v = torch.randn(3, 2, 4, 7, 5, device="meta")
    numbers = torch.empty(2, 1, 7, 1, dtype=torch.bool if given == "mask" else q.dtype, device="meta")
    assert attend(q, k, v, **{given: numbers}, kernel="sdpa").shape == q.shape
    assert [(mask.shape[-1], mask.stride(-1)) for mask in masks] == [(7, 1)]


def test_an_activation_that_learns_has_gradients():
    q, k, v, score = torch.randn(7, 5), torch.randn(11, 5), torch.randn(11, 5), Additive(5, 5, 4, nn.PReLU())
    learned = tuple(score.parameters())
    found = [torch.autograd.grad(attend(q, k, v, score, kernel=kernel).sum(), learned) for kernel in KINDS]
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)
    assert all(gradient.any() for gradient in found[0] if gradient.shape != score.query.bias.shape)


@pytest.mark.parametrize("kernel", ["blocked", "sdpa"])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "other values"])
def test_double_precision_is_kept(kernel, shape, six_by_six):
    p = problem(shape, mask="causal and padding").to(torch.float64)
    six_by_six(p)
    exact = solve(p, "eager", full=False)
    check(solve(p, kernel, full=False), exact, exact, torch.float64)


def test_eager_by_hand():
    """The reference itself, with nothing but Python's own numbers."""
    p = problem("heads", mask="causal", bias="linear distance").to(torch.float64)
    found = solve(p, "eager", backward=False)
    values = p.values.tolist()
    for example, head, row in itertools.product(range(2), range(3), range(11)):
        query, slope = p.queries[example, head, row].tolist(), float(p.bias.slopes[head])
        shares = []
        for place in range(row + 1):
            key = p.keys[example, head, place].tolist()
            score = sum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(5) - slope * abs(row - place)
            shares.append(math.exp(score))
        output = [
            sum(share * values[example][head][place][part] for place, share in enumerate(shares)) / sum(shares)
            for part in range(5)
        ]
        assert found["output"][example, head, row].tolist() == pytest.approx(output, abs=1e-12)
        assert float(found["log-sum-exp"][example, head, row]) == pytest.approx(math.log(sum(shares)), abs=1e-12)
