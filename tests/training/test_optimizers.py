"""Muon: its update by singular values, the weights that it takes, and its state in a checkpoint."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

from foveate.training import Training, optimizers
from foveate.training.optimizer_state import restore_optimizer
from foveate.training.optimizers import MUON, Muon, optimizer, orthogonalized
from foveate.training.parallel import Placement

CPU = torch.device("cpu")


class Tied(nn.Module):
    """An embedding that is also the output layer, and a part with a linear layer and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 5)
        self.part = nn.Sequential(nn.Linear(5, 5), nn.LayerNorm(5))
        self.output = nn.Linear(5, 7, bias=False)
        self.output.weight = self.embedding.weight

    def loss(self) -> torch.Tensor:
        return self.output(self.part(self.embedding(torch.tensor([3, 1])))).logsumexp(-1).sum()


def stepped(model: Tied, chosen: torch.optim.Optimizer, steps: int) -> None:
    for _ in range(steps):
        model.loss().backward()
        chosen.step()
        chosen.zero_grad()


@pytest.mark.parametrize("fast", [False, True])
def test_singular_values_move_to_about_1_and_vectors_stay(fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the precision in which a CPU is fast."""
    monkeypatch.setattr(optimizers, "bfloat16_is_fast", lambda: fast)
    left, _ = torch.linalg.qr(torch.randn(11, 3))
    right, _ = torch.linalg.qr(torch.randn(5, 3))
    matrix = left @ torch.diag(torch.tensor([40.0, 9.0, 3.0])) @ right.T
    for given, sides in ((matrix, (left, right)), (matrix.T, (right, left))):
        values = sides[0].T @ orthogonalized(given[None])[0] @ sides[1]
        assert ((values.diagonal() > 0.65) & (values.diagonal() < 1.25)).all()
        assert (values - torch.diag(values.diagonal())).abs().max() < 0.05


def test_matrices_of_one_shape_are_updated_together_as_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many go into one call."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Sequential(*(nn.Linear(4, 6) for _ in range(5))), nn.Linear(6, 2))
    gradients = [torch.randn(6, 4) for _ in range(5)]
    found = []
    for most in (1, 50, 2**20):
        monkeypatch.setattr(optimizers, "MOST_TOGETHER", most)
        own = copy.deepcopy(model)
        chosen = optimizer(own, Training(optimizer="muon", learning_rate=0.01), CPU)
        for layer, gradient in zip(own[0], gradients, strict=True):
            layer.weight.grad = gradient.clone()
        chosen.step()
        found.append(torch.stack([layer.weight.detach() for layer in own[0]]))
    before = torch.stack([layer.weight.detach() for layer in model[0]])
    assert ((found[0] - before).abs().amax((1, 2)) > 1e-3).all()
    for one in found[1:]:
        torch.testing.assert_close(one, found[0], rtol=0, atol=1e-5)


def test_muon_takes_the_matrices_inside_and_adamw_all_others() -> None:
    model = Tied()
    chosen = optimizer(model, Training(optimizer="muon", learning_rate=0.01, weight_decay=0.5), CPU)
    (inside,) = (group["params"] for group in chosen.param_groups if group.get(MUON))
    assert [weight is model.part[0].weight for weight in inside] == [True]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    stepped(model, chosen, 1)
    moved = model.part[0].weight.detach() - before["part.0.weight"] * (1 - 0.01 * 0.5)
    values = torch.linalg.svdvals(moved) / (0.01 * 0.2 * 5**0.5)
    assert 0.6 < values[0] < 1.3  # later ones may be of directions without a gradient
    row = model.embedding.weight.detach()[3] - before["embedding.weight"][3] * (1 - 0.01 * 0.5)
    torch.testing.assert_close(row.abs(), torch.full((5,), 0.01), rtol=1e-3, atol=0)  # the first step of Adam
    assert list(chosen.state[model.part[0].weight]) == ["step", "momentum"]


def test_a_restored_muon_goes_on_with_the_same_bits() -> None:
    settings, models = Training(optimizer="muon", learning_rate=0.01), []
    for split in (4, 2):
        torch.manual_seed(3)
        model = Tied()
        chosen = optimizer(model, settings, CPU)
        stepped(model, chosen, split)
        state = chosen.state_dict()["state"].items()
        tensors = [(f"{index}/{name}", value.clone()) for index, each in state for name, value in each.items()]
        again = optimizer(model, settings, CPU)
        restore_optimizer(again, Placement(model, CPU), tensors)
        stepped(model, again, 4 - split)
        models.append(model)
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(one, other)


class Convolutions(nn.Module):
    """A convolution of all channels, one of each channel for itself, and an output that is the model's own."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Sequential(nn.Conv2d(3, 6, 3), nn.Conv2d(6, 6, 3, groups=6))
        self.output = nn.Conv2d(6, 5, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(self.part(x))


def test_muon_takes_a_convolution_as_a_matrix_whatever_its_layout_in_memory() -> None:
    moved = []
    for layout in (torch.contiguous_format, torch.channels_last):
        torch.manual_seed(3)
        model = Convolutions().to(memory_format=layout)
        chosen = optimizer(model, Training(optimizer="muon", weight_decay=0.0), CPU)
        (inside,) = (group["params"] for group in chosen.param_groups if group.get(MUON))
        assert [weight is model.part[0].weight for weight in inside] == [True]
        before = model.part[0].weight.detach().clone()
        model(torch.randn(2, 3, 7, 7)).square().sum().backward()
        chosen.param_groups[-1]["lr"] = 0.01
        chosen.step()
        moved.append((model.part[0].weight.detach() - before).flatten(1))
    values = torch.linalg.svdvals(moved[0]) / (0.01 * 0.2 * 27**0.5)
    assert 0.6 < values[0] < 1.3
    torch.testing.assert_close(moved[0], moved[1], rtol=0.05, atol=1e-4)


@pytest.mark.parametrize("shape", [(7, 13), (13, 7), (11, 11)])
def test_matrices_are_updated_as_by_torch(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.optim.Muon, which takes no convolutions, leaves all else to a second optimizer, and always computes in
    bfloat16."""
    monkeypatch.setattr(optimizers, "bfloat16_is_fast", lambda: True)
    ours = nn.Parameter(torch.randn(shape))
    theirs = nn.Parameter(ours.detach().clone())
    settings: dict[str, Any] = {"lr": 1e-2, "weight_decay": 0.1}
    muon = Muon([{"params": [ours], MUON: True, **settings}])
    reference = torch.optim.Muon([theirs], adjust_lr_fn="match_rms_adamw", **settings)
    for _ in range(5):
        gradient = torch.randn(shape)
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        muon.step()
        reference.step()
    assert torch.equal(ours, theirs)
