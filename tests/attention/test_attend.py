"""What holds of attention whatever computes it: the worked example, symmetries, queries that see nothing, errors."""

import math

import pytest
import torch
from grid import MASKS, SCORES

from foveate.attention import (
    Additive,
    Biaffine,
    Dot,
    Memory,
    ScaledDot,
    attend,
    attend_full,
    causal,
    padding,
    window,
)
from foveate.nn import MultiHeadAttention

KERNELS = ["sdpa", "eager", "blocked"]

X = torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]])
Y = torch.tensor([[1.0, -1, 0]])
W_Q = torch.tensor([[0.0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, -1]])
W_K = torch.eye(4)
W_V = torch.tensor([[1.0, 0, 0, 0], [0, 1, 1, 0]])
Z = torch.tensor([[2 * math.exp(-0.5), math.exp(0.5)]]) / (2 * math.exp(-0.5) + math.exp(0.5))


def kernels_for(score: str) -> list[str]:
    return KERNELS[1:] if "additive" in score or "capped" in score else KERNELS


@pytest.mark.parametrize("kernel", ["eager", "blocked"])
def test_worked_example(kernel):
    assert (Y @ W_Q.T).tolist() == [[-1, 1, 0, 1]]
    z = attend(Y @ W_Q.T, X @ W_K.T, X @ W_V.T, kernel=kernel)
    torch.testing.assert_close(z, Z, atol=1e-6, rtol=0)
    torch.testing.assert_close(z, torch.tensor([[0.42388, 0.57612]]), atol=5e-6, rtol=0)


def test_worked_example_in_a_module():
    layer = MultiHeadAttention(3, heads=1, source_width=4, head_width=4, value_width=2, output_width=2)
    with torch.no_grad():
        for projection, weight in (
            (layer.query, W_Q),
            (layer.key, W_K),
            (layer.value, W_V),
            (layer.output, torch.eye(2)),
        ):
            projection.weight.copy_(weight)
            projection.bias.zero_()
    torch.testing.assert_close(layer(Y[None], X[None])[0], Z, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("score", "kernel"), [(score, kernel) for score in SCORES for kernel in kernels_for(score)])
def test_order_of_the_keys_does_not_matter(score, kernel):
    q, k, v, order = torch.randn(2, 7, 5), torch.randn(2, 11, 3), torch.randn(2, 11, 5), torch.randperm(11)
    k = k if score not in ("dot", "scaled dot", "soft-capped") else torch.randn(2, 11, 5)
    score = SCORES[score](5, k.shape[-1])
    given = torch.rand(7, 11) < 0.7
    found = attend(q, k[:, order], v[:, order], score, mask=given[:, order], kernel=kernel)
    torch.testing.assert_close(found, attend(q, k, v, score, mask=given, kernel=kernel))


@pytest.mark.parametrize(("score", "kernel"), [(score, kernel) for score in SCORES for kernel in kernels_for(score)])
def test_each_query_is_answered_for_itself(score, kernel):
    q, k, v, order = torch.randn(2, 7, 5), torch.randn(2, 11, 5), torch.randn(2, 11, 5), torch.randperm(7)
    score = SCORES[score](5, 5)
    found = attend(q[:, order], k, v, score, kernel=kernel)
    torch.testing.assert_close(found, attend(q, k, v, score, kernel=kernel)[:, order])
    torch.testing.assert_close(found[:, 3:4], attend(q[:, order][:, 3:4], k, v, score, kernel=kernel))


@pytest.mark.parametrize("kernel", KERNELS)
def test_self_attention_of_a_permuted_sequence_is_permuted(kernel):
    x, order = torch.randn(2, 13, 5), torch.randperm(13)
    to_q, to_k, to_v = torch.randn(3, 5, 5)

    def weights_and_output(x):
        q, k, v = x @ to_q, x @ to_k, x @ to_v
        # The identity as values: the output is the weights.
        weights = attend(q, k, torch.eye(13).expand(2, 13, 13), kernel="eager")
        return weights, attend(q, k, v, kernel=kernel)

    weights, output = weights_and_output(x)
    permuted_weights, permuted_output = weights_and_output(x[:, order])
    torch.testing.assert_close(permuted_output, output[:, order])
    torch.testing.assert_close(permuted_weights, weights[:, order][:, :, order])


@pytest.mark.parametrize("kernel", KERNELS)
def test_hidden_keys_and_values_do_not_matter(kernel):
    q, k, v, lengths = torch.randn(2, 7, 5), torch.randn(2, 11, 5), torch.randn(2, 11, 5), torch.tensor([4, 11])
    before = attend(q, k, v, mask=padding(lengths), kernel=kernel)
    k[0, 4:], v[0, 4:] = 1e4, 1e4
    assert torch.equal(attend(q, k, v, mask=padding(lengths), kernel=kernel), before)


@pytest.mark.parametrize(("score", "kernel"), [(score, kernel) for score in SCORES for kernel in kernels_for(score)])
@pytest.mark.parametrize("mask", ["causal earlier", "padding", "given", "given and window"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_query_that_may_look_nowhere_gives_zeros(score, kernel, mask, dtype):
    q, k, v = (torch.randn(2, 3, size, 5, dtype=dtype).requires_grad_() for size in (7, 11, 11))
    score, mask = SCORES[score](5, 5), MASKS[mask]((2, 3), 7, 11)
    if isinstance(score, torch.nn.Module):
        score.to(dtype)
    everyone = torch.ones(2, 3, 7, 11, dtype=torch.bool)
    allowed = everyone & (mask if isinstance(mask, torch.Tensor) else mask.block(range(7), range(11), 2, q.device))
    dead, unseen = ~allowed.any(-1), ~allowed.any(-2)
    assert dead.any()
    output = attend(q, k, v, score, mask, kernel=kernel)
    learned = [q, k, v, *score.tensors()]
    to_q, to_k, to_v, *to_score = torch.autograd.grad(output, learned, torch.randn_like(output))
    assert not output[dead].any()
    assert output[~dead].any()
    assert not to_q[dead].any()
    assert not to_k[unseen].any()
    assert not to_v[unseen].any()
    assert all(gradient.isfinite().all() for gradient in (to_q, to_k, to_v, *to_score))


@pytest.mark.parametrize("kernel", ["eager", "blocked"])
@pytest.mark.parametrize("score", SCORES)
def test_log_sum_exp_of_a_query_that_may_look_nowhere(score, kernel):
    q, k, v = (torch.randn(2, 3, size, 5).requires_grad_() for size in (7, 11, 11))
    attended = attend_full(q, k, v, SCORES[score](5, 5), mask=causal(-3), kernel=kernel)
    assert (attended.log_sum_exp[..., :3] == -torch.inf).all()
    assert attended.log_sum_exp[..., 3:].isfinite().all()
    to_q, to_k = torch.autograd.grad(attended.log_sum_exp, [q, k], torch.ones_like(attended.log_sum_exp))
    assert not to_q[..., :3, :].any()
    assert not to_k[..., 4:, :].any()
    assert to_q.isfinite().all()
    assert to_k.isfinite().all()


@pytest.mark.parametrize("kernel", ["eager", "blocked"])
def test_log_sum_exp_of_a_row_that_a_bias_hides_has_finite_gradients(kernel) -> None:
    q, k, v = torch.randn(2, 5, 11).requires_grad_(), torch.randn(2, 7, 11).requires_grad_(), torch.randn(2, 7, 13)
    bias = torch.zeros(5, 7)
    bias[3] = -torch.inf
    found = attend_full(q, k, v, bias=bias, kernel=kernel).log_sum_exp
    assert torch.equal(found.isneginf(), torch.tensor([[False, False, False, True, False]] * 2))
    found[:, :3].square().sum().backward()
    assert q.grad.isfinite().all()
    assert k.grad.isfinite().all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("batch", "t", "s"), [(2, 7, 0), (2, 0, 11), (0, 7, 11)])
@pytest.mark.parametrize("mask", [None, causal(), window(2), causal() & torch.ones(1, 1, dtype=torch.bool)])
def test_nothing_to_look_at_or_nobody_who_looks(kernel, batch, t, s, mask):
    q, k, v = (torch.randn(batch, 3, size, 5).requires_grad_() for size in (t, s, s))
    with torch.no_grad():
        log_sum_exp = attend_full(q, k, v, mask=mask, kernel=kernel).log_sum_exp
    assert log_sum_exp.shape == (batch, 3, t)
    assert (log_sum_exp == -torch.inf).all()
    output = attend(q, k, v, mask=mask, kernel=kernel)
    assert torch.equal(output, torch.zeros(batch, 3, t, 5))
    assert not any(gradient.any() for gradient in torch.autograd.grad(output.sum(), [q, k, v]))


@pytest.mark.parametrize("kernel", KERNELS)
def test_values_may_have_more_leading_dimensions(kernel):
    """Two sets of values behind the same keys: the weights, and so their log-sum-exp, are the same for both."""
    q, k, v = torch.randn(7, 5), torch.randn(11, 5), torch.randn(2, 11, 5)
    attended = attend_full(q, k, v, kernel=kernel)
    for example in range(2):
        alone = attend_full(q, k, v[example], kernel=kernel)
        torch.testing.assert_close(attended.output[example], alone.output)
        torch.testing.assert_close(attended.log_sum_exp[example], alone.log_sum_exp)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_memory_is_keys_values_and_score(kernel):
    q, k, v = torch.randn(2, 7, 5), torch.randn(2, 11, 3), torch.randn(2, 11, 5)
    score = Biaffine(5, 3)
    assert torch.equal(attend(q, Memory(k, v, score), kernel=kernel), attend(q, k, v, score, kernel=kernel))


@pytest.mark.parametrize("kernel", ["eager", "blocked"])
def test_backward_twice(kernel):
    """Each block's memory is worked in, and a graph may still be used again."""
    q, k, v = (torch.randn(2, size, 5).requires_grad_() for size in (7, 11, 11))
    output = attend(q, k, v, Additive(5, 5, 3), mask=causal(2), kernel=kernel)
    first = torch.autograd.grad(output.sum(), [q, k, v], retain_graph=True)
    second = torch.autograd.grad(output.sum(), [q, k, v])
    assert all(torch.equal(*pair) for pair in zip(first, second, strict=True))


@pytest.mark.parametrize("kernel", KERNELS)
def test_under_checkpointing(kernel, monkeypatch):
    """What a layer saves may be dropped and computed again."""
    monkeypatch.setattr(f"foveate.attention.kernels.{'sdpa' if kernel == 'sdpa' else 'blocked'}.BLOCK", 44)
    parts = [torch.randn(2, size, 5).requires_grad_() for size in (7, 11, 11)]

    def layer(q, k, v):
        return attend(q, k, v, mask=window(3), kernel=kernel)

    expected = torch.autograd.grad(layer(*parts).sum(), parts)
    again = torch.utils.checkpoint.checkpoint(layer, *parts, use_reentrant=False)
    assert all(torch.equal(*pair) for pair in zip(torch.autograd.grad(again.sum(), parts), expected, strict=True))


def test_dot_is_scaled_dot_of_factor_one():
    q, k, v = torch.randn(2, 7, 5), torch.randn(2, 11, 5), torch.randn(2, 11, 5)
    assert torch.equal(attend(q, k, v, Dot()), attend(q, k, v, ScaledDot(1.0)))
    torch.testing.assert_close(attend(q, k, v), attend(q, k, v, ScaledDot(5**-0.5)))
