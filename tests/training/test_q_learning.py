"""Q-learning: the objective and its targets, by hand."""

import pytest
import torch

from foveate.contracts import IGNORE, Output, label_batch
from foveate.training.objectives.q_learning import QLearning, double_q_targets


def test_the_target_network_says_what_the_chosen_action_is_worth() -> None:
    """Three states, two actions. The second action ends the episode."""
    online = torch.tensor([[[9.0, 9.0], [1.0, 2.0], [5.0, 3.0]]])
    target = torch.tensor([[[9.0, 9.0], [7.0, 4.0], [6.0, 8.0]]])
    rewards, ended = torch.tensor([[0.5, 1.0]]), torch.tensor([[False, True]])
    found = double_q_targets(online, target, rewards, ended, 0.5)
    assert found.tolist() == [[0.5 + 0.5 * 4, 1.0]]
    assert double_q_targets(online, target, rewards, ~ended, 0.5).tolist() == [[0.5, 1 + 0.5 * 6]]


def test_hubers_loss_of_the_actions_that_were_taken() -> None:
    logits = torch.tensor([[[1.0, 3.0], [0.0, 2.0], [5.0, 5.0]]], requires_grad=True)
    batch = label_batch({}, torch.tensor([[1, 0, IGNORE]]), "episodes")
    batch.targets["values"] = torch.tensor([[1.0, 0.5, 7.0]])
    loss = QLearning()(Output(logits), batch)
    assert float(loss.total.detach()) == pytest.approx((2 - 0.5) + 0.5 * 0.5**2)
    assert float(loss.log["value"]) == 3
    loss.total.backward()
    assert logits.grad.tolist() == [[[0, 1], [-0.5, 0], [0, 0]]]
