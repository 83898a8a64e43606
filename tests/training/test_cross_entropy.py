"""Smoothed cross-entropy in parts of some rows: the same as all at once, for any number of rows."""

import pytest
import torch
import torch.nn.functional as F

from foveate.training.objectives.cross_entropy import ROWS, smoothed_cross_entropy


@pytest.mark.parametrize("tokens", [1, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 3])
def test_any_number_of_rows(tokens: int) -> None:
    logits = torch.randn(1, tokens, 13, dtype=torch.float64, requires_grad=True)
    labels, counts = torch.randint(13, (1, tokens)), torch.ones(1, tokens, dtype=torch.bool)
    loss, log_prob, likeliest = smoothed_cross_entropy(logits, labels, counts, 0.1)
    (gradient,) = torch.autograd.grad(loss * 0.7, logits)
    expected = F.cross_entropy(logits[0], labels[0], reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected * 0.7, logits)[0])
    torch.testing.assert_close(log_prob, logits.log_softmax(-1).gather(-1, labels[..., None])[..., 0])
    assert torch.equal(likeliest, logits.argmax(-1) == labels)


def test_logits_that_lie_otherwise_in_memory() -> None:
    """As those of a network that has time first."""
    along, labels = torch.randn(5, 3, 11, requires_grad=True), torch.randint(11, (3, 5))
    loss, _, _ = smoothed_cross_entropy(along.transpose(0, 1), labels, torch.ones(3, 5, dtype=torch.bool), 0.1)
    expected = F.cross_entropy(
        along.transpose(0, 1).flatten(0, 1), labels.flatten(), reduction="sum", label_smoothing=0.1
    )
    gradients = [torch.autograd.grad(one, along)[0] for one in (loss, expected)]
    torch.testing.assert_close(*gradients)


def test_two_backward_passes_add_up() -> None:
    logits, labels = torch.randn(2, 3, 11, requires_grad=True), torch.randint(11, (2, 3))
    loss, _, _ = smoothed_cross_entropy(logits, labels, torch.ones(2, 3, dtype=torch.bool), 0.1)
    loss.backward(retain_graph=True)
    assert logits.grad is not None
    once = logits.grad.clone()
    loss.backward()
    torch.testing.assert_close(logits.grad, 2 * once)


def test_half_precision_is_summed_in_float32() -> None:
    logits, labels = torch.randn(3, 5, 997).bfloat16(), torch.randint(997, (3, 5))
    counts = torch.ones(3, 5, dtype=torch.bool)
    loss, log_prob, _ = smoothed_cross_entropy(logits, labels, counts, 0.1)
    assert loss.dtype == log_prob.dtype == torch.float32
    exact = F.cross_entropy(logits.double().flatten(0, 1), labels.flatten(), reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(loss.double(), exact, rtol=1e-6, atol=0)
