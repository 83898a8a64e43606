"""Monotonic selection: the recurrence written out, and that nothing ever goes back."""

import pytest
import torch
from torch import Tensor

from foveate.attention import Dot, Memory, Monotonic, ScaledDot, attend, attend_full, padding
from foveate.attention.kernels import rows

B, H, T, S, D, V = 2, 3, 5, 11, 7, 13


def draw() -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(B, H, T, D) * 2, torch.randn(B, H, S, D), torch.randn(B, H, S, V)


def recurrence(stops: Tensor) -> Tensor:
    """From Raffel et al. 2017, equation 9: a sum over where the query before it stopped."""
    weights = torch.zeros(*stops.shape)
    before = torch.zeros(*stops.shape[:-2], S)
    before[..., 0] = 1
    for query in range(stops.shape[-2]):
        for key in range(S):
            for start in range(key + 1):
                passed = (1 - stops[..., query, start:key]).prod(-1)
                weights[..., query, key] += before[..., start] * passed * stops[..., query, key]
        before = weights[..., query, :]
    return weights


def test_expected_places() -> None:
    q, k, v = draw()
    select = Monotonic(offset=0.3, noise=0.0)
    found = attend_full(q, k, v, select=select)
    expected = recurrence((ScaledDot().block(q, k) + 0.3).sigmoid().detach())
    torch.testing.assert_close(found.weights, expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.output, expected @ v, atol=1e-5, rtol=1e-4)
    assert (found.weights.sum(-1) <= 1 + 1e-5).all()


def test_autocast_does_not_round_what_one_query_leaves_to_the_next() -> None:
    q, k, v = draw()
    q, k = q.bfloat16().float(), k.bfloat16().float()
    select = Monotonic(noise=0.0)
    exact = attend_full(q, k, v, score=Dot(), select=select).weights
    with torch.autocast("cpu", torch.bfloat16):
        scores = Dot().block(q, k)
        rounded = select.select(scores, v).weights
    torch.testing.assert_close(rounded, select.select(scores.float(), v).weights, atol=0, rtol=0)
    assert not torch.equal(rounded, exact)


@pytest.mark.parametrize("train", [True, False])
def test_steps_are_the_rows_of_one_call(train: bool) -> None:
    q, k, v = draw()
    select, memory, state = Monotonic(noise=0.0).train(train), Memory(k, v, ScaledDot()), None
    whole = attend_full(q, k, v, select=select)
    for step in range(T):
        found = attend_full(q[..., step : step + 1, :], memory, select=select, state=state)
        state = found.state
        torch.testing.assert_close(found.output, whole.output[..., step : step + 1, :])


def test_hard_places_never_go_back() -> None:
    q, k, v = draw()
    found = attend_full(q, k, v, select=Monotonic(offset=-0.5).eval())
    stops, place = ScaledDot().block(q, k) > 0.5, torch.zeros(B, H, dtype=torch.int64)
    for query in range(T):
        for b in range(B):
            for h in range(H):
                ahead = [key for key in range(int(place[b, h]), S) if stops[b, h, query, key]]
                choice = int(found.choice[b, h, query])
                assert choice == (ahead[0] if ahead else -1)
                taken = v[b, h, choice] if ahead else torch.zeros(V)
                assert torch.equal(found.output[b, h, query], taken)
                place[b, h] = ahead[0] if ahead else place[b, h]


def test_decided_scores() -> None:
    """Who stops surely takes each key once, however many have been passed: probabilities do not leak or grow."""
    scores = torch.full((9, 50), 40.0)
    scores[:, ::2] = -40.0
    scores.requires_grad_()
    found = attend_full(scores, torch.eye(50), torch.eye(50), Dot(), select=Monotonic(offset=0.0, noise=0.0))
    expected = torch.zeros(9, 50)
    expected[:, 1] = 1
    torch.testing.assert_close(found.weights, expected)
    (gradient,) = torch.autograd.grad(found.output.sum(), scores)
    assert gradient.isfinite().all()


def test_padding_is_passed() -> None:
    q, k, v = (part.requires_grad_() for part in draw())
    mask = padding(torch.tensor([S, 4]))
    for train in (True, False):
        found = attend_full(q, k, v, mask=mask, select=Monotonic().train(train))
        assert not found.weights[1, ..., 4:].any()
        gradients = torch.autograd.grad(found.output.sum(), (q, k, v), allow_unused=not train)
        assert all(part.isfinite().all() for part in gradients if part is not None)


def test_gradients_reach_scores_and_offset() -> None:
    q, k, v = (part.double().requires_grad_() for part in draw())
    select = Monotonic(noise=0.0).double()

    def run(q: Tensor, k: Tensor, v: Tensor, offset: Tensor) -> Tensor:
        return torch.func.functional_call(_Attends(select), {"select.offset": offset}, (q, k, v))

    assert torch.autograd.gradcheck(run, (q[:1, :1, :3], k[:1, :1], v[:1, :1], select.offset))


class _Attends(torch.nn.Module):
    def __init__(self, select: Monotonic) -> None:
        super().__init__()
        self.select = select

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(q, k, v, select=self.select)


def test_noise_is_of_the_generator_and_of_training_alone() -> None:
    q, k, v = draw()
    select = Monotonic(noise=1.0)

    def run(seed: int) -> Tensor:
        return attend_full(q, k, v, select=select, generator=torch.Generator().manual_seed(seed)).output

    assert torch.equal(run(3), run(3))
    assert not torch.equal(run(3), run(4))
    select.eval()
    assert torch.equal(run(3), run(4))


def test_dropout_makes_no_sense() -> None:
    with pytest.raises(ValueError, match=r"dropout of 0\.1 makes no sense for a monotonic selection"):
        attend(*draw(), select=Monotonic(), dropout=0.1)


@pytest.mark.parametrize("train", [True, False])
def test_some_queries_at_a_time(train: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel of rows goes on from the state before its queries, and so does its gradient."""
    monkeypatch.setattr(rows, "BLOCK", B * H * S)
    select = Monotonic(0.3, noise=0.0).double().train(train)
    parts = [part.double().requires_grad_() for part in draw()]
    found = {}
    for kernel in ("eager", "rows"):
        output = attend(*parts, select=select, mask=padding(torch.tensor([4, S])), kernel=kernel)
        learned = (*parts, select.offset) if train else (parts[2],)
        found[kernel] = output, *torch.autograd.grad(output.sin().sum(), learned)
    torch.testing.assert_close(found["rows"], found["eager"], atol=1e-12, rtol=1e-12)


def test_gradients_are_those_of_differences() -> None:
    parts = [torch.randn(2, size, 3, dtype=torch.float64, requires_grad=True) for size in (4, 5, 5)]
    select = Monotonic(noise=0.0).double()
    assert torch.autograd.gradcheck(lambda q, k, v: attend(q, k, v, select=select), parts)
