"""`foveate models`: what can be trained."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from foveate import models
from foveate.cli.parse import parse
from foveate.data import SPELLINGS
from foveate.tasks import TASKS, task_class


@dataclass
class Models:
    """List the presets that each task can train, and those that are only to build, with their parameters."""

    vocabulary: int = 8000
    """Size of each vocabulary that parameters are counted with."""


COUNTED = {"classes": 2, "tags": 16, "spellings": SPELLINGS, "conditions": 1}
"""What the sizes that data decides are counted with, but for vocabularies."""


def main(arguments: Sequence[str]) -> None:
    options = parse(Models, arguments, "models")
    console = Console()
    groups = {f"foveate train {task}": task_class(task).presets() for task in TASKS}
    trained = {name for presets in groups.values() for name in presets}
    groups["foveate.create, without a task"] = {
        name: preset for name, preset in models.presets().items() if name not in trained
    }
    for title, presets in groups.items():
        table = Table(title=title, title_justify="left")
        table.add_column("preset", no_wrap=True)
        table.add_column("parameters", justify="right", no_wrap=True)
        table.add_column("what it is")
        for preset in presets.values():
            sizes = {name: COUNTED.get(name, options.vocabulary) for name in models.sizes_of_data(preset.family)}
            model = models.create(preset.name, device="meta", **sizes)
            parameters = sum(parameter.numel() for parameter in model.parameters())
            table.add_row(preset.name, f"{parameters:,}", preset.summary)
        if presets:
            console.print(table)
    print(f"counted with {options.vocabulary:,} subwords; `foveate train TASK --model PRESET --help` shows all sizes")
