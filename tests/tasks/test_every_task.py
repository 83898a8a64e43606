"""What every task keeps, whatever it reads and writes: a task is tested by being listed."""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any

import made_examples
import pytest
import torch
from made_examples import Made
from rich.console import Console

import foveate
from foveate import models
from foveate.cli import main
from foveate.errors import printable
from foveate.forms.form import setting_names
from foveate.tasks import TASKS, find_task
from foveate.tasks.learning import learn
from foveate.tasks.recipe import Recipe
from foveate.tasks.skill import Skill
from foveate.tasks.task import Task

STEPS = 2


def smallest(task: Task, families: tuple[str, ...] = ()) -> models.Preset:
    """The smallest preset of a task, perhaps of some families."""
    presets = [one for one in task.presets().values() if not families or one.family in families]
    return min(presets, key=lambda preset: preset.parameters)


class Workshop:
    """Trains models of tasks when they are first asked for, on examples that are made for them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[str, Made] = {}
        self.trained: dict[tuple[str, str], Path] = {}

    def examples(self, task: Task) -> Made:
        if task.name not in self.made:
            self.made[task.name] = made_examples.examples_of(task, self.folder / f"{task.name} examples")
        return self.made[task.name]

    def recipe(self, task: Task, model: str, out: Path, **changes: Any) -> Recipe:
        """A short training. One that begins from a run of another task, or is judged by one, has that trained first."""
        made = self.examples(task)
        parts = (task.examples, task.reads, task.writes, task.objective)
        known = {name for part in parts for name in names(part)}
        settings = {name: value for name, value in made.settings.items() if name in known}
        for name in names(task.objective):
            if name in TASKS:
                settings[name] = self.run(find_task(name))
        if task.start.missing and "start" not in changes:
            settings["start"] = self.run(find_task(task.start.of), task.families)
        training = {"steps": STEPS, "validate_every": STEPS, "save_every": 1, "warmup": 1, "average": 1}
        settings |= {"data": made.data, "validation": made.data, "validation_examples": 6, "precision": "float32"}
        return task.recipe(**{"model": model, "out": out, **settings, **training, **changes})

    def run(self, task: Task, families: tuple[str, ...] = ()) -> Path:
        """The folder of a trained model."""
        model = smallest(task, families).name
        out = self.folder / f"{task.name} {model}"
        if (task.name, model) not in self.trained:
            torch.manual_seed(0)
            learn(self.recipe(task, model, out), console=Console(file=StringIO()))
            self.trained[task.name, model] = out
        return out


def names(part: Any) -> tuple[str, ...]:
    """The settings of a part of a recipe."""
    return setting_names(type(part)) if hasattr(part, "saved_apart") else tuple(one.name for one in fields(part))


@dataclass
class Trained:
    """A trained model of a task, and what it is asked."""

    task: Task
    workshop: Workshop
    folder: Path

    @cached_property
    def skill(self) -> Skill:
        return foveate.load(self.folder)

    @cached_property
    def made(self) -> Made:
        return self.workshop.examples(self.task)

    @cached_property
    def inputs(self) -> list[str]:
        """Two inputs that can be read."""
        if self.made.inputs:
            return [*self.made.inputs]
        reads = self.skill.processor.reads
        places = dict.fromkeys(map(reads.place, self.task.read(self.made.data, self.skill.recipe)))
        return [*places][:2]

    @cached_property
    def unreadable(self) -> list[str]:
        """Inputs that cannot be read."""
        return made_examples.unreadable(self.task, self.folder.parent)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("every"))


@pytest.fixture(scope="module", params=TASKS)
def trained(request: pytest.FixtureRequest, workshop: Workshop) -> Trained:
    task = find_task(request.param)
    return Trained(task, workshop, workshop.run(task))


@dataclass
class Ended:
    """How a command ended, and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def error(self) -> str:
        """The one line that says what was wrong."""
        assert "Traceback" not in self.err
        assert self.status == 2, self
        found = self.err.splitlines()[-1]
        assert found.startswith("foveate: ")
        return found.removeprefix("foveate: ")


Command = Callable[..., Ended]


@pytest.fixture
def run(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Command:
    """Runs a verb of the command line on the model; its status and what it wrote."""
    monkeypatch.chdir(tmp_path)

    def command(verb: str, *arguments: object) -> Ended:
        capsys.readouterr()
        status = 0
        try:
            main([verb, str(trained.folder), *map(str, arguments)])
        except SystemExit as ended:
            status = int(ended.code or 0)
        return Ended(status, *capsys.readouterr())

    return command


def alike(lines: list[str], others: list[str]) -> bool:
    """Whether lines say the same, but for the rounding of numbers."""
    words, others = (" ".join(some).replace("/", " ").split() for some in (lines, others))
    return len(words) == len(others) and all(
        one == other or float(one) == pytest.approx(float(other), abs=2e-3)
        for one, other in zip(words, others, strict=True)
    )


def test_run(trained: Trained, run: Command) -> None:
    """Answers come in order, for one input and for several."""
    first, second = trained.inputs
    flags = trained.made.flags
    alone = run("run", first, *flags)
    assert (alone.status, len(alone.lines)) == (0, 1), alone
    both, turned = run("run", first, second, *flags), run("run", second, first, *flags)
    assert (both.status, turned.status) == (0, 0)
    assert all(both.lines)
    if not hasattr(trained.skill.processor.writes.run_options(), "seed"):  # what is drawn depends on what was before
        assert alike(both.lines, turned.lines[::-1])
        assert alike(both.lines[:1], alone.lines)


def test_an_input_that_cannot_be_read_costs_no_other_its_answer(trained: Trained, run: Command) -> None:
    first, second = trained.inputs
    for unreadable in trained.unreadable:
        ended = run("run", first, unreadable, second, *trained.made.flags)
        assert ended.error
        assert [bool(line) for line in ended.lines] == [True, False, True]


def test_json(trained: Trained, run: Command) -> None:
    """A failed input has its reason, in one way for all tasks."""
    first, second = trained.inputs
    given = [first, *trained.unreadable, second]
    ended = run("run", *given, "--json", *trained.made.flags)
    rows = [json.loads(line) for line in ended.lines]
    assert ended.error
    assert [row["input"] for row in rows] == [*map(printable, given)]
    assert [row.keys() == {"input", "error"} for row in rows] == [one not in trained.inputs for one in given]
    assert all(len(row) > 1 and "error" not in row for row in (rows[0], rows[-1]))
    assert all(isinstance(row["error"], str) and row["error"] for row in rows[1:-1])
