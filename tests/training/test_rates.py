"""Frozen parts of a model and factors of the learning rate."""

import pytest
import torch
from torch import nn

from foveate.cli.parse import parse
from foveate.errors import UserError
from foveate.training import Training
from foveate.training.optimizers import FACTOR, optimizer
from foveate.training.rates import factor, freeze

CPU = torch.device("cpu")


def model() -> nn.Module:
    body = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 5))
    return nn.ModuleDict({"body": body, "head": nn.Linear(5, 2)})


def test_the_longest_place_counts_and_frozen_ones_have_none() -> None:
    settings = Training(rate_factors={"body": 0.1, "body.1": 0.5}, freeze=("body.0.bias",))
    names = ("body.0.weight", "body.0.bias", "body.1.weight", "module.body.1.bias", "head.weight", "body10.weight")
    assert [factor(name, settings) for name in names] == [0.1, 0.0, 0.5, 0.5, 1.0, 1.0]


def test_frozen_weights_get_no_gradient_and_no_place_in_the_optimizer() -> None:
    part, settings = model(), Training(freeze=("body.0",), rate_factors={"body.1": 0.0})
    freeze(part, settings)
    part["head"](part["body"](torch.randn(7, 3))).sum().backward()
    assert [name for name, weight in part.named_parameters() if weight.grad is not None] == ["head.weight", "head.bias"]
    assert len([weight for group in optimizer(part, settings, CPU).param_groups for weight in group["params"]]) == 2


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_each_group_has_its_factor(kind: str) -> None:
    part = model()
    settings = Training(optimizer=kind, rate_factors={"body.0": 0.25, "head.bias": 3.0})  # type: ignore[arg-type]
    groups = optimizer(part, settings, CPU).param_groups
    found = {id(weight): group[FACTOR] for group in groups for weight in group["params"]}
    assert {name: found[id(weight)] for name, weight in part.named_parameters()} == {
        "body.0.weight": 0.25,
        "body.0.bias": 0.25,
        "body.1.weight": 1.0,
        "body.1.bias": 1.0,
        "head.weight": 1.0,
        "head.bias": 3.0,
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Training(freeze=("body.3",)), "unknown place of weights in the model 'body.3'; did you mean body.1 or body.0"),
        (Training(rate_factors={"xyz": 0.1}), "unknown place of weights in the model 'xyz'; known: body, head"),
        (Training(rate_factors={"body": -1.0}), "the rate factor of body is -1.0, but must be at least 0"),
        (Training(freeze=("body", "head")), "all weights are frozen, so that nothing is left to train"),
    ],
)
def test_places_that_are_not_there(settings: Training, message: str) -> None:
    with pytest.raises(UserError, match=message):
        freeze(model(), settings)


def test_factors_are_one_flag_whatever_the_default_is() -> None:
    for default in ({}, {"head": 2.0}):
        kind = Training(rate_factors=default)
        assert parse(Training, ["--rate-factors", "stack", "0.1", "head", "3"], "train", kind).rate_factors == {
            "stack": 0.1,
            "head": 3.0,
        }
        assert parse(Training, [], "train", kind).rate_factors == default
    with pytest.raises(UserError, match="--rate-factors is 'stack', but must be PLACE FACTOR"):
        parse(Training, ["--rate-factors", "stack"], "train")
