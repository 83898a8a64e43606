"""`foveate eval RUN --data FILE`: measure a trained model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from foveate import tasks
from foveate.cli.folders import check_no_part, parse_with_task
from foveate.console import plain_console, print_table
from foveate.data.folders import allowing_outside
from foveate.data.text.files import check_readable_again
from foveate.errors import UserError, printable
from foveate.files import check_place, real_path, strict_json, written
from foveate.forms.ranged_pixels import use_pixel_range
from foveate.forms.truncation import use_truncation
from foveate.tasks.evaluation import Evaluation
from foveate.tasks.examples.hub_data import local_paths

Options = TypeVar("Options")


@dataclass
class Eval(Generic[Options]):
    """Have a trained model answer what the answers are known of, and compare.

    A model's task adds options of its own: `foveate eval RUN --help` shows them. Without RUN, a translator's are shown.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a trained model: of foveate's or of Hugging Face's; or a name of trained weights: smollm2."""
    options: Annotated[Options, tyro.conf.arg(name="")]
    data: tuple[Path, ...] = ()
    """Files or a folder, as `foveate train` of the model's task takes them; plain or .gz. Without it, the test part of
    the data by name that the model was trained on, or what the training held out of your files."""
    allow_outside: bool = False
    """Read files too that a table names outside its own folder."""
    columns: Annotated[tuple[str, ...], tyro.conf.arg(metavar="COLUMN=TITLE ...")] = ()
    """What the table calls our columns, where it has other titles than the one of the training."""
    output: Path | None = None
    """Also write the model's answers to this file: one line for each line of the data, as `foveate run` prints them."""
    pixel_range: tuple[float, float] | None = None
    """For images: the values of 16-bit and floating-point pixels that become black and white. By default as in the
    training."""
    truncate: bool = False
    """Cut texts that are too long for the model, instead of leaving them out."""
    json: bool = False
    """Print one JSON object instead of tables."""
    device: str = "cpu"
    """Where to compute: "cpu", "auto" for a GPU of this machine if there is one, or PyTorch's name of a device."""


def main(arguments: Sequence[str]) -> None:
    asked = parse_with_task(Eval, arguments, "eval")
    asked.options.check()
    task: Any = tasks.load(asked.folder, asked.device)
    use_pixel_range(task, asked.pixel_range)
    use_truncation(task, asked.truncate)
    if asked.output is not None:
        _check_output(asked.output, asked)
    languages = getattr(task.recipe.examples, "languages", None)
    asked.data = local_paths(asked.data, task.recipe.task, languages)
    for path in asked.data:
        check_readable_again(path)
    if asked.allow_outside and not hasattr(task.recipe.examples, "allow_outside"):
        raise UserError("--allow-outside: tables of this task name no files")
    if asked.columns:
        if not hasattr(task.recipe.examples, "columns"):
            raise UserError("--columns: this task reads no table")
        task.recipe.examples.columns = asked.columns
    with allowing_outside(asked.allow_outside):
        evaluation = task.evaluate(asked.data, asked.options, plain_console(stderr=True, soft_wrap=True))
    if asked.output is not None:
        with written(real_path(asked.output)) as temporary:  # through links
            lines = ("\\n".join(answer.splitlines()) for answer in evaluation.answers)
            temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if asked.json:
        print(strict_json(evaluation.figures))
    else:
        _show(evaluation)


def _check_output(output: Path, asked: Eval[Any]) -> None:
    """Raise UserError for a file that cannot be written, or whose content the user would miss: before the work."""
    check_place(output)
    target = real_path(output)
    for path in map(real_path, asked.data):
        if path == target or path in target.parents:
            raise UserError(f"{output} is what the model is measured on: name another --output")
    check_no_part(output, asked.folder, "--output")


def _show(evaluation: Evaluation) -> None:
    console = plain_console()
    for headings, rows in [
        (evaluation.headings, evaluation.rows),
        *((one.headings, one.rows) for one in evaluation.tables),
    ]:
        print_table(console, headings, rows)
    for note in evaluation.notes:
        console.print(printable(note), markup=False, highlight=False, soft_wrap=True)
