"""Trains a small model of each task, on examples that are made for it."""

from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any

import made_examples
from made_examples import Made
from rich.console import Console

from foveate import models
from foveate.forms.form import setting_names
from foveate.tasks import TASKS, find_task
from foveate.tasks.learning import learn
from foveate.tasks.recipe import Recipe
from foveate.tasks.task import Task

STEPS = 3

NARROW = {
    "gpt1-tiny": {"width": 32, "heads": 2, "feedforward": 128, "layers": 2},
    "rnn-autoencoder": {"embedding": 32, "width": 32},
    "text-to-image-tiny": {"layers": 2},
    "captioner-transformer-tiny": {"decoder_layers": 2},
}
"""Sizes of presets that would take seconds to train."""


def smallest(task: Task, families: tuple[str, ...] = (), attending: bool = False) -> models.Preset:
    """The smallest preset of a task, perhaps of some families, or of those that attend."""
    presets = [one for one in task.presets().values() if not families or one.family in families]
    return min((one for one in presets if one.attends or not attending), key=lambda preset: preset.parameters)


SILENT = Console(file=StringIO())


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
            settings["start"] = self.run(find_task(task.start.of[0]), task.families)
        if "start" not in settings and "start" not in changes:
            settings["architecture"] = NARROW.get(model, {})
        training = {
            "steps": STEPS,
            "epochs": None,
            "validate_every": STEPS,
            "save_every": STEPS,
            "log_every": 1,
            "warmup": 1,
            "average": 1,
            "watch_attention": models.preset(model).attends,
        }
        settings |= {"data": made.data, "validation": made.data, "validation_examples": 6, "precision": "float32"}
        return task.recipe(**{"model": model, "out": out, **settings, **training, **changes})

    def run(self, task: Task, families: tuple[str, ...] = (), attending: bool = False) -> Path:
        """The folder of the smallest model of a task, once it is trained."""
        model = smallest(task, families, attending).name
        out = self.folder / f"{task.name} {model}"
        if (task.name, model) not in self.trained:
            learn(self.recipe(task, model, out), console=SILENT)
            self.trained[task.name, model] = out
        return out


def names(part: Any) -> tuple[str, ...]:
    """The settings of a part of a recipe."""
    return setting_names(type(part)) if hasattr(part, "saved_apart") else tuple(one.name for one in fields(part))
