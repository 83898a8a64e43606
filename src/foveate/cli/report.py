"""`foveate report RUN`: one page about a training."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeGuard

import tyro

from foveate import bundle, tasks
from foveate.cli.folders import check_no_part, check_place
from foveate.cli.parse import parse
from foveate.errors import UserError, one_line, printable, show_value
from foveate.files import written
from foveate.training import read_rows
from foveate.training.writers import Row
from foveate.viewer.curves import draw
from foveate.viewer.report import Section, flat, report_page

METRICS = "metrics.jsonl"
MOST_METRICS = 40
"""Metrics that are drawn and listed."""

OF_TRAINING = {
    "loss": "loss",
    "learning_rate": "learning rate",
    "gradient_norm": "norm of the gradient",
    "tokens_per_second": "tokens or examples a second",
}
"""What a row of a training holds and is drawn, with its name on the page."""


@dataclass
class Report:
    """Write one page about a training, also while it runs: curves, what was measured, all settings, and the answers to
    inputs of yours."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a training."""
    input: tuple[str, ...] = ()
    """Inputs whose answers the page shows, with where the model looked; texts, or files of images or sounds."""
    out: Path = Path("report.html")
    """File to write the page to."""


def main(arguments: Sequence[str]) -> None:
    asked = parse(Report, arguments, "report")
    check_place(asked.out)
    check_no_part(asked.out, asked.folder, "--out")
    rows = _rows(asked.folder / METRICS)
    sections = [Section("Curves", pictures=_curves(rows)), Section("Measured", _measured(rows))]
    if asked.input:
        sections.append(_answers(asked))
    if (asked.folder / bundle.CONFIG).is_file():
        settings = bundle.load(asked.folder).description.get("recipe", {})
        sections.append(Section("All settings", flat(settings), folded=True))
    page = report_page(str(asked.folder), _summary(rows), sections)
    with written(asked.out) as path:
        path.write_text(page, encoding="utf-8")
    print(f"wrote {one_line(asked.out)}: {len(rows):,} rows of metrics, {asked.out.stat().st_size / 1e6:.1f} MB")


def _rows(path: Path) -> list[Row]:
    """The rows of a training; an incomplete last line of one that runs is left out."""
    if not path.is_file():
        raise UserError(f"{path.parent} has no {METRICS}: it is no training of foveate's")
    rows = read_rows(path)
    if not rows:
        raise UserError(f"{path} has no rows yet")
    return rows


def _summary(rows: Sequence[Row]) -> str:
    last = rows[-1]
    epoch, seconds = last.get("epoch"), last.get("seconds")
    told = f"{last['step']:,} steps, {epoch if _number(epoch) else '?'} epochs"
    told += f", {seconds / 60:,.1f} minutes" if _number(seconds) else ""
    final = _final(rows)
    return f"{told}; kept: {show_value(final.get('kept'))}" if final else f"{told}; not ended"


def _final(rows: Sequence[Row]) -> dict[str, Any]:
    """What was noted in the end; empty where the training has not ended."""
    return next((final for row in reversed(rows) if (final := _table(row.get("final")))), {})


def _table(value: Any) -> dict[str, Any]:
    """A table with names that can be written; empty for anything else."""
    return (
        {printable(name.encode("utf-8", "replace").decode()): one for name, one in value.items()}
        if isinstance(value, dict)
        else {}
    )


def _curves(rows: Sequence[Row]) -> list[tuple[str, Any]]:
    """A picture of each number of the training, and of each metric of the validations."""
    known = {name: [(row["step"], row[name]) for row in rows if _number(row.get(name))] for name in OF_TRAINING}
    checked = [(row["step"], metrics) for row in rows if (metrics := _table(row.get("validation")))]
    for name in _names(metrics for _, metrics in checked):
        known[name] = [(step, metrics[name]) for step, metrics in checked if _number(metrics.get(name))]
    pictures = []
    for name, points in known.items():
        if len(points) > 1:
            steps, values = zip(*points, strict=True)
            title = OF_TRAINING.get(name) or f"validation: {name.replace('_', ' ')}"
            pictures.append((title, draw({title: (steps, values)}, "step", "")))
    return pictures


def _measured(rows: Sequence[Row]) -> list[list[str]]:
    """A row for each validation, and for what was compared in the end."""
    found = [(f"step {row['step']:,}", metrics) for row in rows if (metrics := _table(row.get("validation")))]
    found += [(f"in the end: {name}", _table(one)) for name, one in _table(_final(rows).get("compared")).items()]
    names = _names(metrics for _, metrics in found)
    body = [[when, *(_value_text(metrics.get(name)) for name in names)] for when, metrics in found]
    return [["", *(name.replace("_", " ") for name in names)], *body] if found else []


def _answers(asked: Report) -> Section:
    """What the trained model answers to the inputs, and where it looked."""
    task = tasks.load(asked.folder, "cpu")
    given = getattr(task, "expand", list)(list(asked.input))
    found = list(zip(given, task.answer(given), strict=True))  # type: ignore[call-arg]
    pictures = [(text, figure) for text, answer in found if (figure := task.picture(answer)) is not None]
    return Section("Answers", [[text, answer.line] for text, answer in found], pictures)


def _names(tables: Iterable[dict[str, Any]]) -> list[str]:
    """The names in some tables, the first ones of very many."""
    return list(dict.fromkeys(name for one in tables for name in one))[:MOST_METRICS]


def _value_text(value: Any) -> str:
    return f"{value:.4g}" if _number(value) else "" if value is None else show_value(value)


def _number(value: Any) -> TypeGuard[float]:
    """Whether a value is a number that can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
