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
    """List what each task can train; with a name, the presets of it and their parameters."""

    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = None
    """A task, a family or a preset whose presets are listed."""
    vocabulary: int | None = None
    """Size of each vocabulary that parameters are counted with; by default that of the paper, or 8,000."""


def main(arguments: Sequence[str]) -> None:
    options = parse(Models, arguments, "models")
    by_task = {task: models.presets(row.families, row.head) for task, row in TASKS.items()}
    groups = by_task if options.name is None else _named(options.name, by_task)
    presets = {name: preset for listed in groups.values() for name, preset in listed.items()}
    counts = {name: _parameters(preset, options.vocabulary) for name, preset in presets.items()}
    if options.name is None:
        print(_overview(by_task, counts))
        return
    for title, listed in groups.items():
        rows = [(_marked(name), f"{counts[name]:,}", preset.summary) for name, preset in listed.items()]
        print(f"{title}\n{_table(rows)}\n")
    if not UNTRAINED.isdisjoint(presets):
        print("* built and tested, but not trained to a result yet: most are as large as in their papers")
    size = (
        f"the papers' vocabularies, or {models.VOCABULARY:,}"
        if options.vocabulary is None
        else f"{options.vocabulary:,}"
    )
    print(f"counted with {size} subwords; `foveate train TASK --model PRESET --help` shows all sizes")


Presets = dict[str, models.Preset]


def _named(name: str, by_task: dict[str, Presets]) -> dict[str, Presets]:
    """The presets of a task or a family, or one preset, under a title that says which tasks train them."""
    if name in by_task:
        return {f"foveate train {name}": by_task[name]}
    known = models.presets()
    presets = {own: preset for own, preset in known.items() if name in (own, preset.family)}
    if not presets:
        raise unknown("task, family or preset", name, {*by_task, *models.FAMILIES, *known})
    family = next(iter(presets.values())).family
    tasks = [task for task, trained in by_task.items() if not presets.keys().isdisjoint(trained)]
    return {f"{family}: foveate train {' | '.join(tasks)}": presets}


def _overview(by_task: dict[str, Presets], counts: dict[str, int]) -> str:
    """A line for each task: how many presets it can train, their least and greatest size, and their families."""
    lines = [f"{'task':14}  presets  parameters   families"]
    width = min(shutil.get_terminal_size().columns, 120)
    for task, presets in by_task.items():
        sizes = [counts[name] for name in presets]
        families = ", ".join(dict.fromkeys(preset.family for preset in presets.values()))
        line = f"{task:14}  {len(presets):7}  {_short(min(sizes)):>5}-{_short(max(sizes)):5}  "
        lines.append(line + textwrap.shorten(families, max(30, width - len(line)), placeholder=" ..."))
    more = "`foveate models NAME` lists the presets of a task or a family, such as:"
    return "\n".join([*lines, "", more, "  foveate models translate", "  foveate models bert"])


def _short(count: int) -> str:
    """A number of parameters in thousands, millions or billions."""
    size, unit = next(
        (size, unit) for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k"), (1, "")) if count >= size
    )
    return f"{count / size:.0f}{unit}" if count >= 10 * size else f"{count / size:.1f}{unit}"


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
    sizes = preset.all_sizes(vocabulary)
    if not models.VOCABULARIES & sizes.keys():
        return preset.parameters
    return sum(parameter.numel() for parameter in models.create(preset.name, device="meta", **sizes).parameters())
