"""The loss against PyTorch's own, and the score function's gradient by hand."""

import pytest
import torch
import torch.nn.functional as F

from foveate.contracts import IGNORE, Batch, Choices, Output, label_batch
from foveate.training import CrossEntropy
from foveate.training.objectives.objective import reinforce


def example(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, Batch]:
    """Logits (3, 5, 11) and labels of which some do not count."""
    logits = torch.randn(3, 5, 11).to(dtype).requires_grad_()
    labels = torch.randint(11, (3, 5))
    labels[0, 3:] = labels[2, 1:] = IGNORE
    return logits, label_batch({}, labels, "example")


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.37])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6), (torch.bfloat16, 1e-2)]
)
def test_equal_to_pytorch(smoothing: float, dtype: torch.dtype, tolerance: float):
    logits, batch = example(dtype)
    loss = CrossEntropy(smoothing)(Output(logits), batch)
    (loss.total * 0.7).backward()
    exact = logits.detach().double().requires_grad_()
    expected = F.cross_entropy(
        exact.flatten(0, 1), batch.labels.flatten(), reduction="sum", label_smoothing=smoothing, ignore_index=IGNORE
    )
    (expected * 0.7).backward()
    torch.testing.assert_close(loss.total.double(), expected, rtol=tolerance, atol=0)
    torch.testing.assert_close(logits.grad.double(), exact.grad, rtol=tolerance, atol=tolerance)
    assert logits.grad.dtype == dtype
    assert (logits.grad[0, 3:] == 0).all()


def test_logs_sums_that_count_no_padding():
    labels = torch.tensor([[2, 0, IGNORE]])
    logits = torch.tensor([[[0.0, 0.0, 3.0], [0.0, 1.0, 0.0], [0.0, 0.0, 9.0]]])
    log = CrossEntropy(0.2)(Output(logits), label_batch({}, labels, "by hand")).log
    assert log["accuracy"] == 1
    by_hand = -3 + torch.tensor([2 + torch.e**3, 2 + torch.e]).log().sum()
    torch.testing.assert_close(log["cross_entropy"], by_hand)


def chosen(log_prob: torch.Tensor, baseline: torch.Tensor | None = None, affects_later_steps: bool = True) -> Choices:
    """Choices of which only the log-probability and the baseline play a role."""
    nothing = torch.zeros_like(log_prob)
    return Choices(log_prob, nothing, nothing if baseline is None else baseline, affects_later_steps)


REWARDS = torch.tensor([[-1.0, -2.0], [-5.0, -7.0]])
COUNTS = torch.tensor([[True, True], [True, False]])


@pytest.mark.parametrize(
    ("affects_later_steps", "expected"),
    [
        # rewards to come: -3 and -2, -5 and nothing; expected were -4, -2 and -4.5; times the weight of 0.5
        (True, [[-0.5, 0.0], [0.25, 0.0]]),
        # each its own label's reward: -1 and -2, -5
        (False, [[-1.5, 0.0], [0.25, 0.0]]),
    ],
)
def test_score_function_gradient_by_hand(affects_later_steps: bool, expected: list[list[float]]):
    log_prob = torch.full((2, 2), -0.7, requires_grad=True)
    baseline = torch.tensor([[-4.0, -2.0], [-4.5, 9.0]])
    loss = reinforce(chosen(log_prob, baseline, affects_later_steps), REWARDS, COUNTS, weight=0.5, entropy_bonus=0.0)
    loss.total.backward()
    torch.testing.assert_close(log_prob.grad, torch.tensor(expected))


def test_the_baseline_learns_to_expect_the_reward():
    """Huber's loss: the error as the gradient, but not more than 1; nothing where no label counts."""
    baseline = torch.tensor([[0.0, -1.5], [-5.25, 3.0]], requires_grad=True)
    choices = chosen(torch.zeros(2, 2), baseline)
    reinforce(choices, REWARDS, COUNTS, weight=1.0, entropy_bonus=0.0).total.backward()
    torch.testing.assert_close(baseline.grad, torch.tensor([[1.0, 0.5], [-0.25, 0.0]]))


def test_entropy_has_its_bonus():
    entropy = torch.tensor([[0.5, 1.0], [2.0, 4.0]], requires_grad=True)
    choices = Choices(torch.zeros(2, 2), entropy, torch.zeros(2, 2), affects_later_steps=True)
    loss = reinforce(choices, REWARDS, COUNTS, weight=1.0, entropy_bonus=0.25)
    loss.total.backward()
    torch.testing.assert_close(entropy.grad, torch.tensor([[-0.25, -0.25], [-0.25, 0.0]]))
    assert loss.log["choice_entropy"] == 3.5


def test_the_signal_with_and_without_baseline_is_logged():
    baseline = torch.tensor([[-4.0, -2.0], [-4.5, 9.0]])
    log = reinforce(chosen(torch.zeros(2, 2), baseline), REWARDS, COUNTS, weight=1.0, entropy_bonus=0.0).log
    assert log["reward_square"] == 3**2 + 2**2 + 5**2
    assert log["advantage_square"] == 1 + 0 + 0.25


def test_a_baseline_lowers_the_variance_of_the_gradient_and_leaves_its_mean():
    """One place of two, with rewards of -8 and -10: many draws of the gradient, with a baseline of 0 and of -9."""
    preference, draws = torch.tensor([0.3, -0.2], requires_grad=True), 4000
    distribution = torch.distributions.Categorical(logits=preference)
    places = distribution.sample((draws, 1))
    log_prob, rewards = distribution.log_prob(places), torch.tensor([-8.0, -10.0])[places]
    counts = torch.ones(draws, 1, dtype=torch.bool)
    found = []
    for expected in (0.0, -9.0):
        baseline = torch.full((draws, 1), expected)
        total = reinforce(chosen(log_prob, baseline), rewards, counts, weight=1.0, entropy_bonus=0.0).total
        (of_choices,) = torch.autograd.grad(total, log_prob, retain_graph=True)
        gradients = of_choices * (torch.eye(2)[places[:, 0]] - preference.detach().softmax(0))
        found.append((gradients.mean(0), gradients.var(0)))
    (mean, variance), (mean_with, variance_with) = found
    torch.testing.assert_close(mean_with, mean, atol=5 * float(variance.max() / draws) ** 0.5, rtol=0)
    assert (variance_with < 0.05 * variance).all()


def test_hard_choices_learn_to_look_where_the_label_is_likely():
    """Two places to look at; the label is likely only after a look at the second."""
    preference = torch.zeros(2, requires_grad=True)
    evidence = torch.tensor([[0.0, 0.0], [0.0, 4.0]])
    batch = label_batch({}, torch.ones(17, 3, dtype=torch.long), "all ones")
    for _ in range(40):
        distribution = torch.distributions.Categorical(logits=preference)
        places = distribution.sample((17, 3))
        choices = chosen(distribution.log_prob(places), torch.full((17, 3), -0.3), affects_later_steps=False)
        objective = CrossEntropy(choice_weight=1.0)
        (gradient,) = torch.autograd.grad(objective(Output(evidence[places], choices), batch).total, preference)
        preference = (preference - 0.1 * gradient).detach().requires_grad_()
    assert preference.softmax(0)[1] > 0.9


def test_choices_at_places_that_do_not_count_have_no_say():
    logits, batch = example()
    log_prob = torch.full((3, 5), -torch.inf).masked_fill(batch.labels != IGNORE, -0.5).requires_grad_()
    loss = CrossEntropy()(Output(logits, chosen(log_prob)), batch).total
    loss.backward()
    assert loss.isfinite()
    assert (log_prob.grad[batch.labels == IGNORE] == 0).all()
    assert (log_prob.grad[:2, 0] != 0).all()
