"""`foveate compare RUN RUN ...`: is one run better than another?"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from foveate import tasks
from foveate.cli.folders import check_no_part, tell_unfinished
from foveate.cli.parse import parse
from foveate.console import plain_console, print_table
from foveate.data.folders import allowing_outside
from foveate.errors import UserError, one_line, printable
from foveate.files import check_place, strict_json
from foveate.tasks.comparing import RunComparison, compare_runs, short_names
from foveate.tasks.examples.hub_data import local_paths
from foveate.viewer.figures import check_extension, save_figure


@dataclass
class Compare:
    """Compare runs of one task on the same examples: what each reaches, how sure that is, and whether the difference
    from the first may be chance. Settings that differ are listed.

    Intervals and probabilities come from drawing the examples anew, the same ones for all runs (paired bootstrap).
    """

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN RUN ...")]
    """Folders of trained models; the others are compared with the first. (required)"""
    data: tuple[Path, ...] = ()
    """Files to compare on, as they are given to train on. Without it, the test part of the data by name that the runs
    were trained on, or what validated them."""
    allow_outside: bool = False
    """Read files too that a table names outside its own folder."""
    picture: Path | None = None
    """Draw the figures with their intervals, in the format of its name (.png, .svg, .pdf)."""
    json: bool = False
    """Print one JSON object instead of tables."""
    device: str = "cpu"
    """Where to compute: "cpu", "auto" for a GPU of this machine if there is one, or PyTorch's name of a device."""


def main(arguments: Sequence[str]) -> None:
    asked = parse(Compare, arguments, "compare")
    if len(asked.folders) < 2:
        raise UserError("give two runs or more to compare")
    if asked.picture is not None:
        check_extension(asked.picture)
        check_place(asked.picture)
        for folder in asked.folders:
            check_no_part(asked.picture, folder, "--picture")
    for folder in asked.folders:
        tell_unfinished(folder)
    skills = [tasks.load(folder, asked.device) for folder in asked.folders]
    data = local_paths(asked.data, skills[0].task.name, getattr(skills[0].recipe.examples, "languages", None))
    with allowing_outside(asked.allow_outside):
        found = compare_runs(skills, short_names(asked.folders), data, plain_console(stderr=True, soft_wrap=True))
    if asked.json:
        print(strict_json(found.json_values()))
    else:
        show_comparison(found)
    if asked.picture is not None:
        save_figure(found.picture(), asked.picture)
        print(f"drew {one_line(asked.picture)}", file=sys.stderr if asked.json else sys.stdout)


def show_comparison(found: RunComparison) -> None:
    """Print what runs reach, in what their recipes differ, and what that means."""
    console = plain_console()
    print_table(console, found.headings, found.rows())
    if found.settings:
        print_table(console, ["setting", *found.names], [[name, *values] for name, values in found.settings.items()])
    for line in [f"{found.examples:,} {found.unit}, {found.found.draws:,} draws of them", *found.notes]:
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
    for line in found.verdicts():
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
