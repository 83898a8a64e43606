"""A training whose numbers are not finite any more keeps its last good checkpoint, and its advice can be followed."""

import re
from functools import cache
from io import StringIO
from pathlib import Path

import made_examples
import pytest
import torch
from rich.console import Console

import foveate
from foveate.errors import UserError
from foveate.finite import CAUSE, FiniteOutputs, NotFinite, first_not_finite
from foveate.run_dir import CHECKPOINTS
from foveate.tasks import find_task
from foveate.tasks.learning import learn
from foveate.tasks.recipe import Recipe
from foveate.tensor_files import read_tensors

MODELS = {"resnet20": "classify-image", "vit-tiny": "classify-image", "transformer-tiny": "translate"}
"""With batch norm, whose statistics the loss of a training does not show, and without."""


@cache
def examples(task: str, folder: Path) -> made_examples.Made:
    return made_examples.examples_of(find_task(task), folder / "examples")


def recipe_of(model: str, folder: Path, **changes: object) -> Recipe:
    task = find_task(MODELS[model])
    made = examples(task.name, folder)
    names = {one for part in (task.examples, task.reads, task.writes) for one in vars(part)}
    settings = {name: value for name, value in made.settings.items() if name in names}
    often = {"validate_every": 1, "save_every": 1, "log_every": 1, "validation_examples": 4, "average": 1}
    data = {"data": made.data, "validation": made.data, "out": folder / "run", "precision": "float32"}
    return task.recipe(**{"model": model, **settings, **data, **often, "steps": 30, "warmup": 1, **changes})


def train(recipe: Recipe) -> str:
    told = StringIO()
    learn(recipe, console=Console(file=told, width=500))
    return told.getvalue()


@pytest.mark.parametrize(
    ("model", "every", "reason", "begins"),
    [
        ("resnet20", 1, "the model computes numbers that are not finite", "begins again"),
        ("resnet20", 5, r"'[\w.]+\.running_var' of the model is not finite any more", "begins again"),
        ("vit-tiny", 1, "the model computes numbers that are not finite", r"goes on from step 1, or begins again wi"),
        (
            "transformer-tiny",
            1,
            "the loss is nan on .*; the weights were not changed",
            r"goes on from step 1 without \S+2\.safetensors, or ",
        ),
        ("transformer-tiny", 9, "the loss is nan on .*; the weights were not changed", "begins again"),
    ],
)
def test_a_rate_that_is_too_high(model: str, every: int, reason: str, begins: str, tmp_path: Path) -> None:
    """The last good checkpoint stays, and the training goes on from it as the error says."""
    often = {"validate_every": every, "save_every": every}
    advice = "try a learning_rate below 10000, a longer warmup: the same command with it"
    with pytest.raises(NotFinite, match=rf"^step \d stopped: {reason}; {advice} {begins}") as caught:
        train(recipe_of(model, tmp_path, learning_rate=1e4, clip=None, **often))
    kept = sorted((tmp_path / "run" / CHECKPOINTS).glob("*.safetensors"))
    assert all(first_not_finite(read_tensors(path).tensors) is None for path in kept)
    assert bool(kept) == ("goes on from step" in str(caught.value))
    if kept:
        assert foveate.load(tmp_path / "run").model is not None
    if without := re.search(r"goes on from step \d without (\S+),", str(caught.value)):
        Path(without[1]).unlink()
    told = train(recipe_of(model, tmp_path, learning_rate=1e-3, warmup=3, clip=None, **often, steps=4))
    assert ("learning_rate is now 0.001; it was 10000.0\nwarmup is now 3; it was 1\n" in told) == bool(kept)
    assert first_not_finite(foveate.load(tmp_path / "run").model.state_dict()) is None


def test_the_rate_of_another_training_may_not_change(tmp_path: Path) -> None:
    """It may after numbers that are not finite, until the next checkpoint."""
    with pytest.raises(NotFinite):
        train(recipe_of("resnet20", tmp_path, learning_rate=1e4, clip=None))
    train(recipe_of("resnet20", tmp_path, learning_rate=1e-3, clip=None, steps=4))
    with pytest.raises(UserError, match=r"has a training with learning_rate 0.001, not 0.002: resume it with 0.001"):
        train(recipe_of("resnet20", tmp_path, learning_rate=2e-3, clip=None, steps=4))


def test_the_first_tensor_that_is_not_finite() -> None:
    tensors = {"a": torch.full((3,), 3e38), "b": torch.tensor(5), "c": torch.ones(0), "d": torch.ones(2).half()}
    assert first_not_finite(tensors) is None
    assert first_not_finite(tensors | {"e": torch.tensor([1.0, -torch.inf]), "f": torch.tensor(torch.nan)}) == "e"


def test_an_error_that_follows_from_nan_is_reported_as_that() -> None:
    layer = torch.nn.Sequential(torch.nn.Linear(2, 3))

    def fail() -> None:
        with FiniteOutputs(layer, "it"):
            layer(torch.ones(1, 2))
            raise ValueError("matrix contains invalid numeric entries")

    with pytest.raises(ValueError, match="matrix contains"):
        fail()
    torch.nn.init.constant_(layer[0].weight, torch.nan)
    with pytest.raises(NotFinite, match=re.escape(f"it: the model's numbers are not finite: {CAUSE}")):
        fail()
    assert not layer._forward_hooks
