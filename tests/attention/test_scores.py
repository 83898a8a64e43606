"""Score functions against their formulas, and the additive score's own backward pass."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from foveate.attention import Additive, Biaffine, Dot, HardCapped, Memory, ScaledDot, Score, SoftCapped, attend
from foveate.attention.kernels import blocked

B, H, T, S, D, E, C = 2, 3, 5, 7, 11, 13, 4


def join(score: Score, q: Tensor, k: Tensor) -> Tensor:
    return score.block(score.queries(q), score.keys(k))


def additive(score: Additive, q: Tensor, k: Tensor, activation: Callable[[Tensor], Tensor] = torch.tanh) -> Tensor:
    """`u·g(W1 k + W2 q + b)` as it is written."""
    hidden = (q @ score.query.weight.T)[..., None, :] + (k @ score.key.weight.T)[..., None, :, :] + score.query.bias
    return activation(hidden) @ score.direction


@pytest.mark.parametrize(("score", "factor"), [(Dot(), 1), (ScaledDot(), 1 / math.sqrt(D)), (ScaledDot(0.3), 0.3)])
def test_dot_products(score: Score, factor: float) -> None:
    q, k = torch.randn(T, D), torch.randn(S, D)
    assert score.scale(D) == pytest.approx(factor)
    expected = [[factor * sum(a * b for a, b in zip(x, y, strict=True)) for y in k.tolist()] for x in q.tolist()]
    torch.testing.assert_close(join(score, q, k), torch.tensor(expected))


def test_biaffine_by_loops() -> None:
    score, q, k = Biaffine(D, E).double(), torch.randn(T, D).double(), torch.randn(S, E).double()
    expected = torch.zeros(T, S).double()
    for t in range(T):
        for s in range(S):
            expected[t, s] = sum(k[s, e] * score.weight[e, d] * q[t, d] for e in range(E) for d in range(D))
    torch.testing.assert_close(join(score, q, k), expected)


@pytest.mark.parametrize("shared", [False, True])
def test_additive_tanh_and_its_gradients(shared: bool) -> None:
    """In double precision to 1e-10; keys shared by the heads, so that their gradients are sums."""
    score = Additive(D, E, C).double()
    q = torch.randn(B, H, T, D).double().requires_grad_()
    k = torch.randn(B, 1 if shared else H, S, E).double().requires_grad_()
    outgoing, learned = torch.randn(B, H, T, S).double(), (q, k, *score.parameters())
    found, expected = join(score, q, k), additive(score, q, k)
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=0)
    ours, theirs = (torch.autograd.grad(one, learned, outgoing) for one in (found, expected))
    torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-10)


def test_additive_tanh_under_autocast_keeps_what_is_left_of_two_large_sums() -> None:
    """Its sums are in single precision; only what it is given, and what it gives, is rounded to 16 bits."""
    score, q, k = Additive(D, E, 256), torch.randn(T, D), torch.randn(S, E)
    nn.init.constant_(score.direction, 0.3)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        queries, keys = score.queries(q), score.keys(k)
        found = score.block(queries, keys)
    assert found.dtype == torch.bfloat16
    expected = score.block(queries.double(), keys.double())
    torch.testing.assert_close(found.double(), expected, atol=1e-3, rtol=2**-8)


def test_additive_with_another_function() -> None:
    score, q, k = Additive(D, E, C, torch.relu), torch.randn(T, D), torch.randn(S, E)
    torch.testing.assert_close(join(score, q, k), additive(score, q, k, torch.relu))
    assert not torch.allclose(join(score, q, k), additive(score, q, k))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_additive_of_extreme_inputs(dtype: torch.dtype) -> None:
    """tanh of +-2000 is +-1; +1000 and -1000 cancel, and tanh(0) = 0 has slope 1."""
    score = Additive(1, 1, 1).to(dtype)
    with torch.no_grad():
        score.direction.fill_(0.5)
    q, k = (torch.tensor([[1e3], [-1e3]], dtype=dtype).requires_grad_() for _ in range(2))
    found = score.block(q, k)
    assert found.tolist() == [[0.5, 0], [0, -0.5]]
    gradients = torch.autograd.grad(found.sum(), (q, k, score.direction))
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert gradients[2].item() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_additive_of_large_inputs_that_nearly_cancel(dtype: torch.dtype) -> None:
    """Exact while each side is below 43, where tanh of either alone has long been 1."""
    q, k = torch.linspace(-43, 43, 173, dtype=dtype)[:, None], torch.linspace(-43, 43, 97, dtype=dtype)[:, None]
    score = Additive(1, 1, 1).to(dtype)
    with torch.no_grad():
        score.direction.fill_(1)
        found = score.block(q, k)
    torch.testing.assert_close(found, torch.tanh(q + k.T), atol=50 * torch.finfo(dtype).eps, rtol=0)


def test_additive_far_on_one_side() -> None:
    score = Additive(1, 1, 1)
    with torch.no_grad():
        score.direction.fill_(1)
    q, k = torch.tensor([[1e3], [-1e3]]).requires_grad_(), torch.tensor([[0.5]]).requires_grad_()
    found = score.block(q, k)
    assert found.flatten().tolist() == [1, -1]
    for gradient in torch.autograd.grad(found.sum(), (q, k)):
        torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-30, rtol=0)


def test_additive_backward_twice_gives_the_same() -> None:
    score = Additive(D, E, C)
    q, k = torch.randn(T, D).requires_grad_(), torch.randn(S, E).requires_grad_()
    total, learned = join(score, q, k).square().sum(), (q, k, *score.parameters())
    first = torch.autograd.grad(total, learned, retain_graph=True)
    assert all(gradient.any() for gradient in first)
    torch.testing.assert_close(torch.autograd.grad(total, learned), first, atol=0, rtol=0)


def test_soft_capped_by_hand() -> None:
    """No score leaves (-cap, cap); small ones hardly change."""
    q, k = torch.tensor([[2.0, 1.0]]), torch.tensor([[0.01, 0.0], [3.0, 0.0], [-100.0, 0.0]])
    found = join(SoftCapped(Dot(), 5.0), q, k)[0].tolist()
    assert found == pytest.approx([5 * math.tanh(0.004), 5 * math.tanh(1.2), -5], abs=1e-6)


def test_hard_capped_by_hand() -> None:
    q, k = torch.tensor([[1.0]], requires_grad=True), torch.tensor([[3.0], [-3.0], [0.5]])
    found = join(HardCapped(Dot(), 2.0), q, k)
    assert found.tolist() == [[2.0, -2.0, 0.5]]
    assert torch.autograd.grad(found.sum(), q)[0].item() == 0.5  # what is cut off has none


def test_soft_capped_is_made_of_another_score() -> None:
    score = Additive(D, E, C)
    capped, q, k = SoftCapped(score, 0.3), torch.randn(T, D), torch.randn(S, E)
    torch.testing.assert_close(join(capped, q, k), 0.3 * torch.tanh(join(score, q, k) / 0.3))
    assert capped.scale(C) is None
    assert capped.footprint(C) == C
    assert capped.tensors() == (score.direction,)
    assert dict(capped.named_parameters()).keys() == {f"score.{name}" for name, _ in score.named_parameters()}


@pytest.mark.parametrize("kind", ["biaffine", "additive"])
def test_keys_are_prepared_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory projects its keys when it is made; queries then only project themselves, once for all blocks."""
    score = Biaffine(D, E) if kind == "biaffine" else Additive(D, E, C)
    counts = {"keys": 0, "queries": 0}
    for name in counts:
        plain = getattr(score, name)

        def counted(x: Tensor, name: str = name, plain: Callable[[Tensor], Tensor] = plain) -> Tensor:
            counts[name] += 1
            return plain(x)

        monkeypatch.setattr(score, name, counted)
    monkeypatch.setattr(blocked, "BLOCK", 4 * C)
    q, k, v = torch.randn(T, D), torch.randn(S, E), torch.randn(S, 3)
    memory = Memory(k, v, score)
    assert counts == {"keys": 1, "queries": 0}
    for _ in range(3):
        attend(q, memory, kernel="blocked")
    assert counts == {"keys": 1, "queries": 3}
    assert torch.equal(memory.keys, score.keys(k))


class Two(nn.Module, Score):
    """The sum of two additive scores: a user's own score, made of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Additive(C, C, C), Additive(C, C, C)

    def scale(self, width: int) -> None:
        return None

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        return join(self.first, queries, keys) + join(self.second, queries, keys)

    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(self.parameters())


def test_scores_may_be_made_of_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parts of a block's score have memory of their own, in the kernel that uses it again for the next block."""
    monkeypatch.setattr(blocked, "BLOCK", 2 * 9)
    score, q, k, v = Two(), *(torch.randn(2, size, C).requires_grad_() for size in (T, S, S))
    learned = (q, k, v, *score.parameters())
    found, expected = (attend(q, k, v, score, kernel=kernel) for kernel in ("blocked", "eager"))
    torch.testing.assert_close(found, expected)
    ours, theirs = (torch.autograd.grad(one.square().sum(), learned) for one in (found, expected))
    torch.testing.assert_close(ours, theirs)


def test_footprint() -> None:
    """Numbers for each pair: one for a product, C for an additive score."""
    assert [score.footprint(C) for score in (Dot(), ScaledDot(), Biaffine(D, E), Additive(D, E, C))] == [1, 1, 1, C]
    assert [score.scale(C) for score in (Biaffine(D, E), Additive(D, E, C))] == [1.0, None]
