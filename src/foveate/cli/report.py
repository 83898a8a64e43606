"""`foveate report RUN`: one page about a training."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from foveate import bundle, tasks
from foveate.cli.folders import check_no_part, check_place
from foveate.cli.parse import parse
from foveate.errors import UserError, one_line
from foveate.files import written
from foveate.viewer.curves import draw
from foveate.viewer.report import Section, flat, report_page

METRICS = "metrics.jsonl"
LARGEST = 2**28
"""Bytes of a file of metrics that is read."""

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


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a training; an incomplete last line of one that runs is left out."""
    if not path.is_file():
        raise UserError(f"{path.parent} has no {METRICS}: it is no training of foveate's")
    if path.stat().st_size > LARGEST:
        raise UserError(f"{path} is larger than {LARGEST / 1e6:,.0f} MB")
    rows = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and isinstance(row.get("step"), int):
            rows.append(row)
    if not rows:
        raise UserError(f"{path} has no rows yet")
    return rows


def _summary(rows: Sequence[dict[str, Any]]) -> str:
    last = rows[-1]
    told = f"{last['step']:,} steps, {last.get('epoch', '?')} epochs, {last.get('seconds', 0) / 60:,.1f} minutes"
    final = next((row["final"] for row in reversed(rows) if "final" in row), None)
    return f"{told}; kept: {final['kept']}" if final else f"{told}; not ended"


def _curves(rows: Sequence[dict[str, Any]]) -> list[tuple[str, Any]]:
    """A picture of each number of the training, and of each metric of the validations."""
    known = {name: [(row["step"], row[name]) for row in rows if _number(row.get(name))] for name in OF_TRAINING}
    checked = [(row["step"], row["validation"]) for row in rows if isinstance(row.get("validation"), dict)]
    for name in dict.fromkeys(name for _, metrics in checked for name in metrics):
        known[name] = [(step, metrics[name]) for step, metrics in checked if _number(metrics.get(name))]
    pictures = []
    for name, points in known.items():
        if len(points) > 1:
            steps, values = zip(*points, strict=True)
            title = OF_TRAINING.get(name) or f"validation: {name.replace('_', ' ')}"
            pictures.append((title, draw({title: (steps, values)}, "step", "")))
    return pictures


def _measured(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A row for each validation, and for what was compared in the end."""
    found = [(f"step {row['step']:,}", row["validation"]) for row in rows if isinstance(row.get("validation"), dict)]
    final: dict[str, Any] = next((row["final"] for row in reversed(rows) if isinstance(row.get("final"), dict)), {})
    found += [(f"in the end: {name}", metrics) for name, metrics in final.get("compared", {}).items()]
    names = list(dict.fromkeys(name for _, metrics in found for name in metrics))
    body = [[when, *(f"{metrics[name]:.4g}" if name in metrics else "" for name in names)] for when, metrics in found]
    return [["", *(name.replace("_", " ") for name in names)], *body] if found else []


def _answers(asked: Report) -> Section:
    """What the trained model answers to the inputs, and where it looked."""
    task = tasks.load(asked.folder, "cpu")
    given = getattr(task, "expand", list)(list(asked.input))
    found = list(zip(given, task.answer(given), strict=True))  # type: ignore[call-arg]
    pictures = [(text, figure) for text, answer in found if (figure := task.picture(answer)) is not None]
    return Section("Answers", [[text, answer.line] for text, answer in found], pictures)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and value == value
