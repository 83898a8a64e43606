"""The loss against PyTorch's own, and the score function's gradient by hand."""

import pytest
import torch
import torch.nn.functional as F

from foveate.contracts import IGNORE, Batch, Output
from foveate.training import CrossEntropy
from foveate.training.objectives import score_function_loss


def example(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, Batch]:
    """Logits (3, 5, 11) and labels of which some do not count."""
    logits = torch.randn(3, 5, 11).to(dtype).requires_grad_()
    labels = torch.randint(11, (3, 5))
    labels[0, 3:] = labels[2, 1:] = IGNORE
    return logits, Batch({}, labels, "example")


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
    log = CrossEntropy(0.2)(Output(logits), Batch({}, labels, "by hand")).log
    assert log["accuracy"] == 1
    by_hand = -3 + torch.tensor([2 + torch.e**3, 2 + torch.e]).log().sum()
    torch.testing.assert_close(log["cross_entropy"], by_hand)


def test_a_second_backward_pass_is_refused_not_wrong():
    logits, batch = example()
    total = CrossEntropy(0.1)(Output(logits), batch).total
    total.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_score_function_gradient_by_hand():
    choices = torch.zeros(2, 2, requires_grad=True)
    labels = torch.tensor([[-1.0, -2.0], [-5.0, -7.0]])
    score_function_loss(choices, labels, torch.tensor([[True, True], [True, False]])).backward()
    # rewards to come: [-3, -2] and [-5, nothing]; baselines: -4 and -2
    torch.testing.assert_close(choices.grad, torch.tensor([[-1.0, 0.0], [1.0, 0.0]]))


def test_hard_choices_learn_to_look_where_the_label_is_likely():
    """Two places to look at; the label is likely only after a look at the second."""
    preference = torch.zeros(2, requires_grad=True)
    evidence = torch.tensor([[0.0, 0.0], [0.0, 4.0]])
    batch = Batch({}, torch.ones(17, 3, dtype=torch.long), "all ones")
    for _ in range(20):
        distribution = torch.distributions.Categorical(logits=preference)
        places = distribution.sample((17, 3))
        output = Output(evidence[places], distribution.log_prob(places))
        (gradient,) = torch.autograd.grad(CrossEntropy()(output, batch).total, preference)
        preference = (preference - 0.05 * gradient).detach().requires_grad_()
    assert preference.softmax(0)[1] > 0.9


def test_choices_at_places_that_do_not_count_have_no_say():
    logits, batch = example()
    choices = torch.full((3, 5), -torch.inf).masked_fill(batch.labels != IGNORE, -0.5).requires_grad_()
    loss = CrossEntropy()(Output(logits, choices), batch).total
    loss.backward()
    assert loss.isfinite()
    assert (choices.grad[batch.labels == IGNORE] == 0).all()
    assert (choices.grad[:2, 0] != 0).all()
