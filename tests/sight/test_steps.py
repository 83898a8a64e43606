"""Calls of one query each on the same keys: seen as one call, and each of them checked."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import foveate
from foveate.attention import Memory, ScaledDot, attend, padding
from foveate.attention.scores import Score
from foveate.errors import UserError

STEPS = 6


class Speller(nn.Module):
    """Attends to a source once for each step."""

    def __init__(self, change: Callable[[int, Tensor, Tensor], Tensor] = lambda step, output, source: output) -> None:
        super().__init__()
        self.change = change

    def forward(self, queries: Tensor, source: Tensor, lengths: Tensor) -> Tensor:
        memory = Memory(source, source, ScaledDot())
        outputs = []
        for step, query in enumerate(queries.split(1, 1)):
            outputs.append(self.change(step, attend(query, memory, mask=padding(lengths)), source))
        return torch.cat(outputs, 1)


def given() -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(3, STEPS, 8), torch.randn(3, 5, 8), torch.tensor([5, 2, 4])


@pytest.mark.parametrize("inference", [True, False])
def test_steps_are_one_call(inference: bool) -> None:
    queries, source, lengths = given()
    with torch.inference_mode(inference), foveate.look(model := Speller()) as sight:
        model(queries, source, lengths)
    site = sight[""]
    assert len(site.calls) == 1
    assert site.shape == (3, 1, STEPS, 5)
    hidden = torch.arange(5) >= lengths[:, None]
    scores = (queries @ source.mT / 8**0.5).masked_fill(hidden[:, None], -torch.inf)
    assert torch.allclose(site.weights()[:, 0], scores.softmax(-1), atol=1e-6)
    assert site.output_error() < 1e-5


def test_gradients_are_those_without_a_look() -> None:
    queries, source, lengths = given()
    found = []
    for looked in (False, True):
        leaf = source.clone().requires_grad_()
        model = Speller()
        with foveate.look(model) if looked else torch.enable_grad():
            model(queries, leaf, lengths).square().sum().backward()
        found.append(leaf.grad)
    assert torch.equal(*found)


@pytest.mark.parametrize("inference", [True, False])
def test_keys_that_are_overwritten_begin_another_map(inference: bool) -> None:
    def overwrite(step: int, output: Tensor, source: Tensor) -> Tensor:
        if step == 2:
            source[:, 1] += 1
        return output

    queries, source, lengths = given()
    with torch.inference_mode(inference), foveate.look(model := Speller(overwrite)) as sight:
        model(queries, source.clone(), lengths)
    assert [sight[site].shape[2] for site in sight.sites] == [3, 3]


class Unsteady(Score):
    """Scores that depend on more than queries and keys."""

    factor = 1.0

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        return self.factor * queries @ keys.mT


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.score = Unsteady()

    def forward(self, query: Tensor, memory: Memory, step: int) -> Tensor:
        self.score.factor = 3.0 if step == 4 else 1.0
        return attend(query, memory)


class Unsteadily(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()

    def forward(self, queries: Tensor, source: Tensor) -> Tensor:
        memory = Memory(source, source, self.attention.score)
        return torch.cat([self.attention(query, memory, step) for step, query in enumerate(queries.split(1, 1))], 1)


def test_a_step_that_does_not_fit_is_told() -> None:
    queries, source, _ = given()
    model = Unsteadily()
    with (
        pytest.raises(UserError, match=r"^attention \(Attention\) has an output that is not the mean of the values"),
        torch.inference_mode(),
        foveate.look(model),
    ):
        model(queries, source)


@pytest.mark.parametrize("inference", [True, False])
def test_a_model_of_foveates_own_may_not_overwrite_keys(inference: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys are compared once, in the end: none of its modules writes to them."""

    def overwrite(step: int, output: Tensor, source: Tensor) -> Tensor:
        if step == 2:
            source[:, 1] += 1e-6
        return output

    monkeypatch.setattr(Speller, "__module__", "foveate.speller")
    queries, source, lengths = given()
    model = Speller(overwrite)
    with (
        pytest.raises(UserError, match="has an output that is not the mean of the values"),
        torch.inference_mode(inference),
        foveate.look(model),
    ):
        model(queries, source.clone(), lengths)
