"""`foveate eval RUN --data FILE`: measure a trained model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, TypeVar

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from foveate import recipes
from foveate.cli.folders import parse_with_task
from foveate.contracts import UserError, strict_json
from foveate.recipes.trained import Evaluation, Trained

Options = TypeVar("Options")


@dataclass
class Eval(Generic[Options]):
    """Have a trained model answer what the answers are known of, and compare.

    A model's task adds options of its own: `foveate eval RUN --help` shows them. Without RUN, a translator's are shown.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a trained model."""
    options: Annotated[Options, tyro.conf.arg(name="")]
    data: tuple[Path, ...] = ()
    """Files as they are given to train on: SRC TGT for a translator; plain or .gz. Without it, the test part of the
    text by name that the model was trained on."""
    output: Path | None = None
    """Also write the model's answers to this file, one a line."""
    json: bool = False
    """Print one JSON object instead of tables."""
    device: str = "cpu"
    """Where to compute: "cpu", "cuda", "mps", or "auto" for a CUDA GPU if there is one."""


def main(arguments: Sequence[str]) -> None:
    asked = parse_with_task(Eval, arguments, "eval")
    asked.options.check()
    task: Trained = recipes.load(asked.folder, asked.device)
    if asked.output is not None:
        if asked.output.resolve() in [path.resolve() for path in asked.data]:
            raise UserError(f"{asked.output} is what the model is measured on: name another --output")
        _write(asked.output, [], "a")  # what cannot be written is told before the work, not after it
    found = task.evaluate(asked.data, asked.options, Console(stderr=True, soft_wrap=True))
    if asked.output is not None:
        _write(asked.output, found.answers)
    if asked.json:
        print(strict_json(found.figures))
    else:
        _show(found)


def _write(path: Path, lines: Sequence[str], mode: str = "w") -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise UserError(f"could not write {path}: {error.strerror}") from None


def _show(found: Evaluation) -> None:
    table = Table()
    for heading in found.headings:
        table.add_column(Text(heading), justify="right")
    for row in found.rows:
        table.add_row(*map(Text, row))  # a label such as [b] is no markup
    console = Console()
    console.print(table)
    for note in found.notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
