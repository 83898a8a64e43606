"""`foveate models`: what can be trained."""

import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro

from foveate import models
from foveate.cli.parse import parse
from foveate.errors import unknown
from foveate.models.untrained import UNTRAINED
from foveate.tasks import TASKS


@dataclass
class Models:
    """List the presets that each task can train, and those that are only to build, with their parameters."""

    task: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")] = None
    """List only what this task can train."""
    vocabulary: int | None = None
    """Size of each vocabulary that parameters are counted with; by default that of the paper, or 8,000."""


def main(arguments: Sequence[str]) -> None:
    options = parse(Models, arguments, "models")
    if options.task is not None and options.task not in TASKS:
        raise unknown("task", options.task, TASKS)
    known = models.presets()
    groups = {
        f"foveate train {task}": models.presets(row.families, row.head)
        for task, row in TASKS.items()
        if options.task in (None, task)
    }
    trained = {name for presets in groups.values() for name in presets}
    if options.task is None:
        others = {name: preset for name, preset in known.items() if name not in trained}
        groups["foveate.create, without a task"] = others
    shown = {name: known[name] for presets in groups.values() for name in presets}
    counts = {name: _parameters(preset, options.vocabulary) for name, preset in shown.items()}
    for title, presets in groups.items():
        if presets:
            rows = [(_marked(name), f"{counts[name]:,}", preset.summary) for name, preset in presets.items()]
            print(f"{title}\n{_table(rows)}\n")
    print("* built and tested, but not trained to a result yet: most are as large as in their papers")
    size = (
        f"the papers' vocabularies, or {models.VOCABULARY:,}"
        if options.vocabulary is None
        else f"{options.vocabulary:,}"
    )
    print(f"counted with {size} subwords; `foveate train TASK --model PRESET --help` shows all sizes")


def _marked(name: str) -> str:
    return f"{name} *" if name in UNTRAINED else name


def _table(rows: Sequence[tuple[str, str, str]]) -> str:
    """Names, parameters and summaries as wide as the terminal; a table of rich's takes four times as long."""
    name, number = (max(len(row[column]) for row in rows) for column in (0, 1))
    margin = name + number + 6
    width = max(margin + 30, min(shutil.get_terminal_size().columns, 120))
    lines = [
        textwrap.fill(summary, width, initial_indent=" " * margin, subsequent_indent=" " * margin)
        for *_, summary in rows
    ]
    return "\n".join(
        f"  {row[0]:{name}}  {row[1]:>{number}}  {line[margin:]}" for row, line in zip(rows, lines, strict=True)
    )


def _parameters(preset: models.Preset, vocabulary: int | None) -> int:
    """As the preset's row says, or counted where another vocabulary changes them, which takes seconds for all."""
    if vocabulary is None:
        return preset.parameters
    usual = {**models.COUNTED, **{name: size for name, size in preset.sizes.items() if name in models.COUNTED}}
    sizes = {name: usual.get(name, vocabulary) for name in models.sizes_of_data(preset.family)}
    if sizes.keys() <= usual.keys():
        return preset.parameters
    return sum(parameter.numel() for parameter in models.create(preset.name, device="meta", **sizes).parameters())
