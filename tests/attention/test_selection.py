"""Soft and hard selection: dropout, the places taken, their probabilities, and what REINFORCE learns from them."""

import math

import pytest
import torch
from torch import Tensor

from foveate.attention import Dot, Hard, Monotonic, Soft, attend, attend_full, causal
from foveate.attention.kernels import blocked
from foveate.attention.selection import Selection

SHARES = torch.tensor([0.1, 0.2, 0.3, 0.4])
DEAD = torch.tensor([[0.5, -torch.inf, 2.0], [-torch.inf] * 3])


def seeded(seed: int = 7) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_hard_takes_places_as_often_as_the_softmax_says() -> None:
    """Chi-square of 3 degrees of freedom: above 16.3 once in a thousand, above 30 once in 700,000."""
    draws = 20_000
    attended = Hard().select(SHARES.log().expand(draws, -1), torch.eye(4), generator=seeded())
    counts = attended.choice.bincount(minlength=4)
    assert ((counts - draws * SHARES).square() / (draws * SHARES)).sum() < 30
    assert torch.equal(attended.output, torch.eye(4)[attended.choice])


def test_hard_is_fair_in_half_precision() -> None:
    """Of two places alike each is taken half the time, to 3 standard errors; ties would favour the first by 5."""
    scores, values = torch.zeros(8_000_000, 2, dtype=torch.bfloat16), torch.zeros(2, 1, dtype=torch.bfloat16)
    choice = Hard().select(scores, values, generator=seeded()).choice
    assert choice.double().mean().item() == pytest.approx(0.5, abs=3 * 0.5 / math.sqrt(len(choice)))


def test_hard_tells_the_log_probability_of_its_choice() -> None:
    scores = torch.randn(2, 3, 5, 7).requires_grad_()
    attended = Hard().select(scores, torch.randn(2, 3, 7, 11))
    expected = scores.log_softmax(-1).gather(-1, attended.choice[..., None]).squeeze(-1)
    torch.testing.assert_close(attended.log_prob, expected)
    ours, theirs = (torch.autograd.grad(one.square().sum(), scores) for one in (attended.log_prob, expected))
    torch.testing.assert_close(ours, theirs)


def test_hard_tells_the_entropy_that_it_drew_from() -> None:
    """By hand: a half and two quarters have an entropy of 1.5 log 2. Its gradient is that of PyTorch's distribution."""
    shares = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    found = Hard().select(shares.log(), torch.eye(3)).entropy
    torch.testing.assert_close(found, torch.tensor([1.5 * math.log(2), 0.0]))
    scores = torch.randn(2, 5, 7).requires_grad_()
    expected = torch.distributions.Categorical(logits=scores).entropy()
    found = Hard().select(scores, torch.randn(2, 7, 3)).entropy
    torch.testing.assert_close(found, expected)
    ours, theirs = (torch.autograd.grad(one.square().sum(), scores) for one in (found, expected))
    torch.testing.assert_close(ours, theirs)


def test_entropy_where_keys_are_hidden_has_finite_gradients() -> None:
    scores = DEAD.clone().requires_grad_()
    entropy = Hard().select(scores, torch.ones(3, 2)).entropy
    assert entropy[1] == 0
    (gradient,) = torch.autograd.grad(entropy.sum(), scores)
    assert gradient.isfinite().all()
    assert gradient[0, 0] > 0 > gradient[0, 2]
    assert not gradient[1].any()


def test_hard_gives_scores_no_gradient_through_the_output() -> None:
    scores, values = torch.randn(5, 7).requires_grad_(), torch.randn(7, 3).requires_grad_()
    attended = Hard().select(scores, values)
    to_scores, to_values = torch.autograd.grad(attended.output.sum(), (scores, values), allow_unused=True)
    assert to_scores is None
    assert torch.equal(to_values[:, 0], attended.choice.bincount(minlength=7).float())


def test_hard_takes_the_likeliest_place_when_not_training() -> None:
    scores = torch.randn(2, 5, 7)
    attended = Hard().eval().select(scores, torch.randn(2, 7, 3))
    assert torch.equal(attended.choice, scores.argmax(-1))


@pytest.mark.parametrize("training", [True, False])
def test_hard_takes_nothing_where_it_may_look_nowhere(training: bool) -> None:
    scores, values = DEAD.clone().requires_grad_(), torch.ones(3, 2)
    attended = Hard().train(training).select(scores, values)
    assert attended.choice[0] in (0, 2)
    assert attended.choice[1] == -1
    assert attended.output.tolist() == [[1, 1], [0, 0]]
    assert attended.log_prob[0] < 0
    assert attended.log_prob[1] == 0
    (gradient,) = torch.autograd.grad(attended.log_prob.sum(), scores)
    assert gradient.isfinite().all()
    assert not gradient[1].any()


@pytest.mark.parametrize(("queries", "keys"), [(3, 0), (0, 3), (0, 0)])
@pytest.mark.parametrize("selection", [Soft(), Hard(), Hard().eval(), Monotonic(), Monotonic().eval()])
def test_nothing_to_look_at_or_nobody_who_looks(selection: Selection, queries: int, keys: int) -> None:
    scores = torch.randn(2, queries, keys, requires_grad=True)
    attended = selection.select(scores, torch.randn(2, keys, 5))
    assert torch.equal(attended.output, torch.zeros(2, queries, 5))
    if attended.choice is not None:
        assert torch.equal(attended.choice, torch.full((2, queries), -1))
    if attended.log_prob is not None:
        (attended.log_prob.sum() + attended.entropy.sum()).backward()
    if isinstance(selection, Monotonic):
        again = selection.select(torch.randn(2, 1, keys), torch.randn(2, keys, 5), state=attended.state)
        assert again.output.shape == (2, 1, 5)


def test_hard_repeats_with_its_generator() -> None:
    q, k, v = torch.randn(2, 31, 5), torch.randn(2, 17, 5), torch.randn(2, 17, 3)
    first, again, other = (attend_full(q, k, v, select=Hard(), generator=seeded(seed)).choice for seed in (7, 7, 8))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_hard_may_take_the_mean_now_and_then() -> None:
    """Each query takes one place or the mean; only the mean gives the scores a gradient through the output."""
    scores, values = torch.randn(4000, 7).requires_grad_(), torch.eye(7)
    attended = Hard(mean=0.3).select(scores, values, generator=seeded())
    shares = scores.softmax(-1)
    means = attended.output.isclose(shares).all(-1)
    assert means.float().mean().item() == pytest.approx(0.3, abs=5 * math.sqrt(0.3 * 0.7 / 4000))
    one = attended.output[~means]
    assert torch.equal(one, torch.eye(7)[one.argmax(-1)])
    torch.testing.assert_close(attended.weights, attended.output)
    assert attended.choice is None
    expected = shares.gather(-1, attended.output.argmax(-1, keepdim=True)).squeeze(-1).log().masked_fill(means, 0)
    torch.testing.assert_close(attended.log_prob, expected)
    (gradient,) = torch.autograd.grad(attended.output[:, 0].sum(), scores)
    assert torch.equal(gradient.any(-1), means)


def test_gradients_of_each_example_alone():
    """torch.func.vmap has no numbers that could be asked whether a query looks nowhere."""
    queries, keys = torch.randn(3, 13, 5), torch.randn(3, 17, 5)

    def total(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        return attend(queries, keys, keys, mask=causal()).square().sum()

    found = torch.func.vmap(torch.func.grad(total))(queries, keys)
    expected = torch.stack([torch.func.grad(total)(*pair) for pair in zip(queries, keys, strict=True)])
    torch.testing.assert_close(found, expected)


def test_hard_takes_no_mean_when_not_training() -> None:
    scores, values = torch.randn(5, 7), torch.randn(7, 3)
    assert torch.equal(Hard(mean=1.0).eval().select(scores, values).output, values[scores.argmax(-1)])
    torch.testing.assert_close(Hard(mean=1.0).select(scores, values).output, Soft().select(scores, values).output)


def test_hard_refuses_dropout() -> None:
    with pytest.raises(ValueError, match=r"^dropout of 0\.1 makes no sense for a hard selection; pass dropout=0$"):
        Hard().select(torch.zeros(1, 3), torch.zeros(3, 1), dropout=0.1)


def test_reinforce_estimates_the_gradient_of_the_expected_reward() -> None:
    """The reward is the value taken, so that its expectation is the soft output, with an exact gradient."""
    scores, rewards, draws = SHARES.log().requires_grad_(), torch.tensor([[3.0], [-1], [2], [0.5]]), 40_000
    (exact,) = torch.autograd.grad((scores.softmax(0) @ rewards).sum(), scores)
    attended = Hard().select(scores.expand(draws, -1), rewards, generator=seeded())
    (found,) = torch.autograd.grad((attended.output.detach().squeeze(-1) * attended.log_prob).mean(), scores)
    # Each draw's estimate deviates by less than the largest reward: five standard errors.
    torch.testing.assert_close(found, exact, atol=5 * 3 / math.sqrt(draws), rtol=0)
    assert exact.abs().max() > 3 * 5 * 3 / math.sqrt(draws)


def test_soft_gives_nothing_where_it_may_look_nowhere() -> None:
    scores = DEAD.clone().requires_grad_()
    output = Soft().select(scores, torch.eye(3)).output
    torch.testing.assert_close(output[0], torch.tensor([1, 0, math.exp(1.5)]) / (1 + math.exp(1.5)))
    assert not output[1].any()
    (gradient,) = torch.autograd.grad(output.square().sum(), scores)
    assert gradient.isfinite().all()
    assert not gradient[1].any()


def test_sinks_by_hand() -> None:
    """Scores of log 1, log 2 and log 3 beside a sink of log 4: of ten parts the keys get six."""
    q, k, values = torch.ones(1, 1, 1), torch.tensor([[[1.0], [2.0], [3.0]]]).log(), torch.eye(3)[None]
    attended = attend_full(q, k, values, score=Dot(), select=Soft(torch.tensor([4.0]).log()))
    torch.testing.assert_close(attended.output, torch.tensor([[[0.1, 0.2, 0.3]]]))
    torch.testing.assert_close(attended.log_sum_exp, torch.tensor([[10.0]]).log())


def test_a_sink_of_zero_is_softmax_off_by_one() -> None:
    scores = torch.randn(2, 3, 5, 7)
    expected = scores.exp() / (1 + scores.exp().sum(-1, keepdim=True))
    torch.testing.assert_close(Soft(torch.zeros(3)).select(scores, torch.eye(7)).output, expected)


def test_gradients_reach_the_sinks() -> None:
    """One sink for each of the heads in groups, in double precision against finite differences."""
    scores, values, sinks = torch.randn(2, 3, 5, 7, 4), torch.randn(4, 2), torch.randn(3, 5)
    inputs = [part.double().requires_grad_() for part in (scores, values, sinks)]
    assert torch.autograd.gradcheck(lambda s, v, sink: Soft(sink).select(s, v).output, inputs)


def test_sinks_where_a_query_may_look_nowhere() -> None:
    """All goes to the sink, and where that takes nothing either, nothing goes anywhere."""
    scores = DEAD.clone().requires_grad_()
    for sink in (0.5, -torch.inf):
        output = Soft(torch.tensor(sink)).select(scores, torch.eye(3)).output
        torch.testing.assert_close(output[0, 2], 1 / (1 + torch.tensor(-1.5).exp() + torch.tensor(sink - 2).exp()))
        assert not output[1].any()
        (gradient,) = torch.autograd.grad(output.square().sum(), scores)
        assert gradient.isfinite().all()
        assert not gradient[1].any()


def test_sinks_and_dropout() -> None:
    """The softmax comes first: half of the weight is the sink's, and of the rest each weight is dropped or doubled."""
    shares = (
        Soft(torch.zeros(())).select(torch.zeros(5000, 1), torch.ones(1, 1), dropout=0.5, generator=seeded()).output
    )
    assert set(shares.flatten().tolist()) == {0, 1}
    assert shares.mean().item() == pytest.approx(0.5, abs=5 * 0.5 / math.sqrt(5000))


@pytest.mark.parametrize("kernel", ["eager", "blocked"])
def test_dropout_keeps_the_expected_output(kernel: str) -> None:
    """Each of 10,000 queries, all alike, drops other places; a kept weight is w / (1 - p)."""
    queries, share = 10_000, 0.3
    q, k, v = torch.zeros(queries, 4), torch.randn(4, 4), torch.eye(4)
    shares = attend_full(q, k, v, dropout=share, kernel=kernel, generator=seeded()).output
    kept = 0.25 / (1 - share)
    assert torch.all((shares == 0) | (shares - kept).abs().lt(1e-6))
    # Five standard errors of a weight that is 0 or `kept`.
    error = 5 * kept * math.sqrt(share * (1 - share) / queries)
    torch.testing.assert_close(shares.mean(0), torch.full((4,), 0.25), atol=error, rtol=0)


def test_dropout_of_one_block_tells_nothing_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 9 of 20 keys: no two keys are dropped together more often than chance would have it."""
    examples = 10_000
    monkeypatch.setattr(blocked, "BLOCK", 9 * examples)
    q, k, v = torch.zeros(examples, 1, 4), torch.randn(20, 4), torch.eye(20)
    shares = attend_full(q, k, v, dropout=0.5, kernel="blocked", generator=seeded()).output[:, 0]
    together = (shares == 0).float().T.corrcoef() - torch.eye(20)
    assert together.abs().max() < 5 / math.sqrt(examples)


@pytest.mark.parametrize("kernel", ["eager", "blocked"])
def test_dropout_repeats_with_its_generator(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked, "BLOCK", 2 * 9)
    q, k, v = torch.randn(2, 5, 3), torch.randn(2, 7, 3), torch.randn(2, 7, 3)
    first, again, other = (
        attend_full(q, k, v, dropout=0.5, kernel=kernel, generator=seeded(seed)).output for seed in (7, 7, 8)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_blocked_dropout_is_the_same_in_both_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks in double precision: the gradients are those of finite differences with the same seed."""
    monkeypatch.setattr(blocked, "BLOCK", 2 * 9)
    q, k, v = (torch.randn(2, size, 3).double().requires_grad_() for size in (5, 7, 7))

    def dropped(*parts: Tensor) -> tuple[Tensor, Tensor | None]:
        attended = attend_full(*parts, dropout=0.4, kernel="blocked", generator=seeded())
        return attended.output, attended.log_sum_exp

    plain = attend_full(q, k, v, kernel="blocked")
    assert not torch.allclose(dropped(q, k, v)[0], plain.output)
    torch.testing.assert_close(dropped(q, k, v)[1], plain.log_sum_exp)
    assert torch.autograd.gradcheck(dropped, (q, k, v))
