"""Weights by other rules than the softmax: what they are, their gradients, the kernel of rows, and looks."""

import itertools
from dataclasses import dataclass

import pytest
import torch
from grid import BIASES, MASKS, SCORES, every, problem, solve
from test_kernels import check
from torch import Tensor, nn

import foveate
from foveate.attention import (
    Entmax,
    Hard,
    Sigmoid,
    Soft,
    SoftmaxPlusOne,
    Sparsemax,
    TopK,
    Weighing,
    attend,
    attend_full,
    causal,
    padding,
)
from foveate.attention.kernels import blocked, rows


@dataclass(frozen=True)
class Squared(Weighing):
    """A rule of a user's own: squares of positive scores, whose sum is below 1."""

    def weigh(self, scores: Tensor) -> Tensor:
        squares = scores.clamp_min(0) ** 2
        return squares / (1 + squares.sum(-1, keepdim=True))


RULES = {
    "sigmoid": Sigmoid(),
    "sigmoid, biased": Sigmoid(-1.5),
    "sparsemax": Sparsemax(),
    "entmax": Entmax(),
    "entmax 1.2": Entmax(1.2),
    "softmax": Entmax(1.0),
    "top": TopK(3),
    "plus one": SoftmaxPlusOne(),
    "own": Squared(),
}

SPARSE = ("sparsemax", "entmax", "entmax 1.2")


def scores_with_gaps() -> Tensor:
    """Random scores, some keys and one row of which are masked."""
    scores = 3 * torch.randn(2, 5, 9, dtype=torch.float64)
    scores[0, 1, 3:] = -torch.inf
    scores[1, 2] = -torch.inf
    return scores


@pytest.mark.parametrize("name", RULES)
def test_masked_keys_have_no_weight(name: str) -> None:
    scores = scores_with_gaps()
    found = RULES[name].weigh(scores)
    assert (found[scores == -torch.inf] == 0).all()
    assert found.isfinite().all()
    assert (found >= 0).all()


@pytest.mark.parametrize("name", SPARSE)
def test_of_one_threshold_weights_are_the_powers_above_it_and_sum_to_one(name: str) -> None:
    """The definition: there is a t with which all weights are max((alpha - 1) score - t, 0) ** (1 / (alpha - 1))."""
    alpha, scores = RULES[name].alpha, scores_with_gaps()
    found = RULES[name].weigh(scores)
    for row, own in zip(found.flatten(0, 1), scores.flatten(0, 1), strict=True):
        if own.isinf().all():
            continue
        assert row.sum() == pytest.approx(1, abs=1e-12)
        thresholds = ((alpha - 1) * own - row ** (alpha - 1))[row > 0]
        assert thresholds.max() - thresholds.min() < 1e-9
        assert ((alpha - 1) * own[row == 0] <= thresholds.mean() + 1e-9).all()
    assert (found == 0).sum() > (scores == -torch.inf).sum()


def test_sparsemax_is_the_nearest_distribution() -> None:
    """By the sorted scores, as Martins and Astudillo give it."""
    scores = 2 * torch.randn(7, 11, dtype=torch.float64)
    ordered, counts = scores.sort(-1, descending=True).values, torch.arange(1, 12)
    inside = 1 + counts * ordered > ordered.cumsum(-1)
    size = inside.sum(-1, keepdim=True)
    threshold = (ordered.cumsum(-1).gather(-1, size - 1) - 1) / size
    torch.testing.assert_close(Sparsemax().weigh(scores), (scores - threshold).clamp_min(0), rtol=0, atol=1e-10)


def test_top_k_is_the_softmax_of_the_largest() -> None:
    scores = torch.randn(4, 9)
    found = TopK(3).weigh(scores)
    assert ((found > 0).sum(-1) == 3).all()
    torch.testing.assert_close(found.sort(-1, descending=True).values[..., :3], scores.topk(3).values.softmax(-1))
    torch.testing.assert_close(TopK(20).weigh(scores), scores.softmax(-1))


def test_softmax_plus_one_has_one_more_in_its_denominator() -> None:
    scores = torch.randn(4, 9)
    torch.testing.assert_close(SoftmaxPlusOne().weigh(scores), scores.exp() / (1 + scores.exp().sum(-1, keepdim=True)))
    far = SoftmaxPlusOne().weigh(torch.tensor([[-90.0, -torch.inf], [90.0, 0.0]]))
    torch.testing.assert_close(far.sum(-1), torch.tensor([0.0, 1.0]))


def test_the_sum_of_sigmoids_begins_near_one_however_many_keys_a_query_sees() -> None:
    scores = torch.zeros(1, 300, 300).masked_fill(torch.ones(300, 300).triu(1).bool(), -torch.inf)
    sums = Sigmoid().weigh(scores).sum(-1)
    assert ((sums > 0.4) & (sums <= 1)).all()
    first = attend(torch.zeros(1, 4), torch.zeros(9, 4), torch.ones(9, 1), select=Sigmoid())
    whole = attend(torch.zeros(9, 4), torch.zeros(9, 4), torch.ones(9, 1), mask=causal(), select=Sigmoid())
    torch.testing.assert_close(first[0], whole[-1])  # a step of decoding, and the same query in the whole text


@pytest.mark.parametrize("name", RULES)
def test_gradients(name: str) -> None:
    scores = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(RULES[name].weigh, scores, eps=1e-7, atol=1e-5)


@pytest.mark.parametrize("wrong", [lambda: Entmax(2.5), lambda: Entmax(0.5), lambda: TopK(0)])
def test_what_cannot_be_is_told(wrong: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        wrong()


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two or three queries of the problems at a time."""
    monkeypatch.setattr(rows, "BLOCK", 200)


TURNS = [
    (shape, mask, bias, score)
    for (shape, mask), bias, score in zip(every(MASKS) * 3, itertools.cycle(BIASES), itertools.cycle(SCORES))
]
"""Masks, biases and scores in turn: a rule sees the scores alone, so that it need not meet them in all combinations."""


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(("shape", "mask", "bias", "score"), TURNS)
@pytest.mark.usefixtures("few_rows")
def test_the_kernel_of_rows(name: str, shape: str, mask: str, bias: str, score: str) -> None:
    p = problem(shape, score, mask, bias)
    exact = solve(p.to(torch.float64), "eager", select=RULES[name])
    eager = solve(p, "eager", select=RULES[name])
    check(solve(p, "rows", select=RULES[name]), eager, exact, torch.float32)


@pytest.mark.parametrize(("shape", "mask", "bias", "score"), every(MASKS, BIASES, SCORES))
@pytest.mark.usefixtures("few_rows")
def test_the_kernel_of_rows_computes_the_softmax_too(shape: str, mask: str, bias: str, score: str) -> None:
    p = problem(shape, score, mask, bias)
    check(solve(p, "rows"), solve(p, "eager"), solve(p.to(torch.float64), "eager"), torch.float32)


@pytest.mark.usefixtures("few_rows")
def test_sinks_and_hard_selections_have_their_gradients_in_other_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked, "BLOCK", 200)
    q, k, v = (torch.randn(2, 3, size, 5, requires_grad=True) for size in (11, 13, 13))
    sinks = torch.randn(3, requires_grad=True)
    found = []
    for kernel in ("eager", "rows", "blocked"):
        full = attend_full(q, k, v, mask=padding(torch.tensor([0, 9])), select=Soft(sinks), kernel=kernel)
        total = full.output.square().sum() + full.log_sum_exp.sin().sum()
        found.append([full.output, *torch.autograd.grad(total, (q, k, v, sinks))])
    for one, *others in zip(*found, strict=True):
        for other in others:
            torch.testing.assert_close(other, one)
    hard = Hard().eval()
    both = [attend_full(q, k, v, select=hard, kernel=kernel) for kernel in ("eager", "rows")]
    assert torch.equal(both[0].choice, both[1].choice)
    found = [torch.autograd.grad((one.log_prob + one.entropy).sum() + one.output.sum(), (q, k, v)) for one in both]
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.usefixtures("few_rows")
def test_what_is_drawn_is_drawn_again_in_the_backward_pass() -> None:
    """The output of dropout is linear in the values, so that its gradient gives the weights that were kept."""
    q, k = torch.randn(7, 5), torch.randn(9, 5)
    v = torch.eye(9, requires_grad=True)
    output = attend(q, k, v, select=Sparsemax(), dropout=0.5, kernel="rows")
    for row in range(7):
        (gradient,) = torch.autograd.grad(output[row].sum(), v, retain_graph=True)
        torch.testing.assert_close(gradient[:, 0], output[row].detach())
    again = attend_full(q, k, v, select=Hard(), kernel="rows", generator=torch.Generator().manual_seed(3))
    same = attend_full(q, k, v, select=Hard(), kernel="rows", generator=torch.Generator().manual_seed(3))
    assert torch.equal(again.choice, same.choice)


@pytest.mark.parametrize("name", RULES)
def test_large_calls_hold_no_more_than_a_block_of_scores(name: str) -> None:
    """Forward and backward, and never more than once each."""
    seen = []

    class Watched(Weighing):
        def weigh(self, scores: Tensor) -> Tensor:
            seen.append(scores.numel())
            return RULES[name].weigh(scores)

    q, k = torch.randn(2500, 4, requires_grad=True), torch.randn(2000, 4)
    attend(q, k, k, select=Watched()).sum().backward()
    assert sum(seen) == 2 * 2500 * 2000
    assert max(seen) <= rows.BLOCK


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("keys", [9, 40])
def test_looks_show_these_weights(name: str, keys: int) -> None:
    class Layer(nn.Module):
        attends = True

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return attend(x, y, y, mask=causal(), select=RULES[name])

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = Layer()

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return self.layer(x, y)

    model, x, y = Model(), torch.randn(1, 2, keys, 8), torch.randn(1, 2, keys, 8)
    with foveate.look(model) as sight:
        output = model(x, y)
    shown = sight["layer"].weights()
    scores = (x @ y.mT / 8**0.5).masked_fill(torch.ones(keys, keys).triu(1).bool(), -torch.inf)
    torch.testing.assert_close(shown, RULES[name].weigh(scores))
    torch.testing.assert_close(shown @ y, output)
    assert sight["layer"].entropy().isfinite().all()
