"""Every task learns on a pretended accelerator what it learns on the CPU, also where its training was stopped."""

import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from pretended import DEVICE, REAL, pretended_device
from torch import Tensor
from workshop import SILENT, STEPS, Workshop, smallest

from foveate import models
from foveate.run_dir import WEIGHTS
from foveate.tasks import TASKS, find_task
from foveate.tasks.learning import learn
from foveate.tasks.loading import load
from foveate.tasks.recipe import Recipe
from foveate.tasks.task import Task
from foveate.tensor_files import read_tensors
from foveate.training import Interrupted, read_rows
from foveate.training.update import Updater

READS = {
    "tolist": 1,  # the loss, what is logged with it, and the norm of the gradient
}
"""What the CPU waits for in a step of training."""

MATCHING = {"aten._to_copy.default": 1}
"""Objects are assigned to queries by the CPU, which reads the costs of all layers at once."""

MATCHED = {"detect"}

CHOOSING = {"detect"}
"""Tasks whose smallest model chooses among places: losses differ where Muon's rounding chooses others."""

COUNTED = {"accuracy", "validation", "final"}
"""Parts of a row that count what is right: an answer near a tie turns with the rounding of a training. They are
compared where both sides have the same weights."""

PACKING = {"autoencode", "match", "ask", "answer", "read", "walk", "transcribe"}
"""Tasks whose smallest model has recurrent layers, which torch gives lengths on the CPU: a reading for each layer."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Quick(tmp_path_factory.mktemp("device"))


class Quick(Workshop):
    """A workshop of models without dropout, whose kernel on accelerators draws other numbers than the CPU's."""

    def recipe(self, task: Task, model: str, out: Path, **changes: Any) -> Recipe:
        fields = models.config_class(models.preset(model).family).__dataclass_fields__
        dropouts = [name for name in fields if name.endswith("dropout") and not name.startswith("condition")]
        own = {"architecture": dict.fromkeys(dropouts, 0.0), "watch_attention": False}
        return super().recipe(task, model, out, **own, **changes)


class StepReads:
    """Counts what crosses in each step of training."""

    def __init__(self, crossings: Counter[str]) -> None:
        self.crossings, self.steps = crossings, list[Counter[str]]()

    def __enter__(self) -> "StepReads":
        self.patch = pytest.MonkeyPatch()
        step = Updater.__call__

        def counted(updater: Updater, *arguments: Any) -> Any:
            before = self.crossings.copy()
            update = step(updater, *arguments)
            self.steps.append(self.crossings - before)
            return update

        self.patch.setattr(Updater, "__call__", counted)
        return self

    def __exit__(self, *error: object) -> None:
        self.patch.undo()


def stop_after_two_steps(row: Any) -> None:
    """A callback that is Ctrl-C."""
    if row["step"] == 2 and "loss" in row:
        signal.raise_signal(signal.SIGINT)


def numbers(value: Any) -> Iterator[float]:
    """All numbers of a row, but for times and what is counted."""
    if isinstance(value, dict):
        for name in sorted(value):
            if "second" not in name and name not in COUNTED:
                yield from numbers(value[name])
    elif isinstance(value, list):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, int | float):
        yield value


def leaves(value: Any, name: str = "") -> dict[str, float]:
    """All figures of an evaluation by their path, but for times."""
    if isinstance(value, dict):
        return {path: leaf for key, one in value.items() for path, leaf in leaves(one, f"{name}/{key}").items()}
    if isinstance(value, list):
        return {path: leaf for key, one in enumerate(value) for path, leaf in leaves(one, f"{name}/{key}").items()}
    return {name: value} if isinstance(value, int | float) and "second" not in name else {}


def apart(tensors: Mapping[str, Tensor], others: Mapping[str, Tensor]) -> float:
    """How far weights are apart, beside how large they are. Adam makes the rounding errors of gradients that should be
    0, such as those of biases before a norm, as large as its steps."""
    distances = torch.stack([(tensor.double() - others[name].double()).norm() for name, tensor in tensors.items()])
    return float(distances.norm() / torch.stack([other.double().norm() for other in others.values()]).norm())


@pytest.mark.parametrize("name", TASKS)
def test_training(name: str, workshop: Workshop, tmp_path: Path) -> None:
    task = find_task(name)
    expected = workshop.run(task)
    recipe = workshop.recipe(task, smallest(task).name, tmp_path / "run", device=DEVICE.type)
    with pretended_device() as crossings, StepReads(crossings) as reads:
        with pytest.raises(Interrupted):
            learn(recipe, console=SILENT, callbacks=[stop_after_two_steps])
        skill = learn(recipe, console=SILENT)
        assert skill.device.type == DEVICE.type
    assert len(reads.steps) == STEPS
    for step in () if REAL else reads.steps:
        allowed = dict(READS)
        if name in PACKING:
            assert step.pop("aten._to_copy.default")
        if name in MATCHED:
            allowed |= MATCHING
        assert step == allowed
    own, others = (read_tensors(folder / WEIGHTS).tensors for folder in (tmp_path / "run", expected))
    assert own.keys() == others.keys()
    assert apart(own, others) < 1e-2
    rows, other_rows = (read_rows(folder / "metrics.jsonl") for folder in (tmp_path / "run", expected))
    for number, (row, other) in enumerate(zip(rows, other_rows, strict=True)):
        near = 1e-2 if number else 1e-4  # the first row has the loss and the gradient of the first weights
        if number and name in CHOOSING:
            near = 3e-2
        assert [*numbers(row)] == pytest.approx([*numbers(other)], rel=near, abs=near)


@pytest.mark.parametrize("name", TASKS)
def test_evaluation(name: str, workshop: Workshop) -> None:
    """The same weights answer alike on both sides, by every measure of the task."""
    task = find_task(name)
    folder, data = workshop.run(task), workshop.examples(task).data
    expected = load(folder, device="cpu").evaluate(data, console=SILENT)
    with pretended_device():
        found = load(folder, device=DEVICE.type).evaluate(data, console=SILENT)
    assert found.answers == expected.answers or REAL  # a device of its own may turn an answer near a tie
    assert leaves(found.figures) == pytest.approx(leaves(expected.figures), rel=1e-3, abs=1e-3)
