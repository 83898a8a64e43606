"""A checkpoint that is damaged in any of its fields is reported in one line, and an older one is resumed from."""

import json
import shutil
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from safetensors.torch import save_file
from tiny_training import run
from torch import Tensor

from foveate.errors import UserError
from foveate.tensor_files import read_tensors, write_tensors

STEP = "step-00000007.safetensors"

Tensors, Metadata = dict[str, Tensor], dict[str, Any]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training with one checkpoint, in the middle of a row of metrics."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    run(folder, steps=7, log_every=5)
    return folder


def damaged(trained: Path, folder: Path, change: Callable[[Tensors, Metadata], object]) -> Path:
    shutil.copytree(trained, folder)
    found = read_tensors(trained / "checkpoints" / STEP)
    own = {name: tensor.clone() for name, tensor in found.tensors.items() if name != "model/head.weight"}
    metadata: Metadata = {name: json.loads(found.metadata[name]) for name in ("progress", "fixed")}
    change(own, metadata)
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in metadata.items()}
    tied = json.dumps({"model/head.weight": "model/embedding.weight"})
    save_file(own, folder / "checkpoints" / STEP, {**found.metadata, **texts, "tied": tied})
    return folder


def resumed(folder: Path) -> None:
    """Resume, which must end well or in one line; a change that was passed over would change the result."""
    with pytest.raises(UserError) as caught:
        run(folder, steps=14, log_every=5)
    assert len(str(caught.value).splitlines()) == 1
    assert STEP in str(caught.value)


def names() -> list[str]:
    """The tensors that a checkpoint of this training has beside the model."""
    return [
        "random/cpu",
        *(f"optimizer/{place}/{key}" for place in (0, 3) for key in ("step", "exp_avg", "exp_avg_sq")),
    ]


WRONG: dict[str, Callable[[Tensor], Tensor | None]] = {
    "missing": lambda tensor: None,
    "longer": lambda tensor: torch.cat([tensor.flatten(), tensor.flatten()]),
    "of another shape": lambda tensor: tensor[None],
    "of another type": lambda tensor: tensor.to(torch.float64 if tensor.is_floating_point() else torch.int64),
    "of whole numbers": lambda tensor: tensor.to(torch.int32),
    "not finite": lambda tensor: torch.full_like(tensor, torch.nan) if tensor.is_floating_point() else tensor[:0],
    "nothing": lambda tensor: torch.zeros(0),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("name", names())
def test_states(name: str, kind: str, trained: Path, tmp_path: Path) -> None:
    def change(tensors: Tensors, metadata: Metadata) -> None:
        wrong = WRONG[kind](tensors.pop(name))
        if wrong is not None:
            tensors[name] = wrong

    resumed(damaged(trained, tmp_path / "run", change))


@pytest.mark.parametrize(
    "name", ["optimizer/99/exp_avg", "optimizer/x/step", "optimizer/0", "optimizer/0/more", "random/x"]
)
def test_states_of_nothing(name: str, trained: Path, tmp_path: Path) -> None:
    resumed(damaged(trained, tmp_path / "run", lambda tensors, _: tensors.update({name: torch.zeros(3)})))


@pytest.mark.parametrize("name", ["model/hidden.weight", "model/norm.bias"])
@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_weights_that_are_not_finite(name: str, number: float, trained: Path, tmp_path: Path) -> None:
    resumed(damaged(trained, tmp_path / "run", lambda tensors, _: tensors[name].fill_(number)))


HOSTILE = (-1, 10**30, 1.5, True, None, "7", [], {}, float("nan"), float("inf"))


def fields() -> Iterator[tuple[str, Any]]:
    for name in ("step", "epoch", "position", "epoch_length", "tokens", "validated", "best_step", "stale"):
        yield from ((name, value) for value in HOSTILE)
    yield from (("seconds", value) for value in (-1, True, None, "7", [], float("nan"), float("inf")))
    for name in ("best", "window"):
        yield from ((name, value) for value in (7, None, [], "7", {"a": "b"}, {"a": None}, {"a": True}))
    scales = ({"factor": -1.0, "steps": 0}, {"factor": float("nan"), "steps": 0}, {"factor": 2.0, "steps": -1})
    yield from (("loss_scale", value) for value in (7, {"steps": "7"}, *scales))
    yield from (("window", {"a": 1.0}), ("step", 8), ("best_step", 8), ("validated", 8))


@pytest.mark.parametrize(("name", "value"), [*fields()])
def test_progress(name: str, value: Any, trained: Path, tmp_path: Path) -> None:
    resumed(damaged(trained, tmp_path / "run", lambda _, metadata: metadata["progress"].update({name: value})))


@pytest.mark.parametrize("part", ["progress", "fixed"])
@pytest.mark.parametrize("value", ["", "[", "7", "null", "[1]", '[["a", 1]]', "[" * 500 + "]" * 500])
def test_metadata(part: str, value: str, trained: Path, tmp_path: Path) -> None:
    resumed(damaged(trained, tmp_path / "run", lambda _, metadata: metadata.update({part: value})))


def test_an_older_one_is_resumed_from(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "whole")
    run(tmp_path / "whole", steps=14, log_every=5)
    newest = tmp_path / "whole" / "checkpoints" / "step-00000014.safetensors"
    found = read_tensors(newest)
    write_tensors(newest, found.tensors | {"random/cpu": torch.zeros(5)}, found.metadata)
    told = StringIO()
    run(tmp_path / "whole", steps=14, log_every=5, console=Console(file=told, width=500))
    line = "'random/cpu' is not a state of random numbers\nresuming from step 7\n"
    assert told.getvalue().startswith(f"skipped a checkpoint: {newest} is damaged: {line}")
