"""`foveate report RUN`: one page about a training."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from foveate import run_dir, tasks
from foveate.cli.folders import check_no_part
from foveate.cli.parse import parse
from foveate.cli.report_curves import attention_curves, chosen_curves, names, number, table, training_rows
from foveate.errors import UserError, one_line, show_value
from foveate.files import check_place, check_utf8, written
from foveate.training.writers import Row
from foveate.viewer.curves import draw, draw_several
from foveate.viewer.figures import check_extension, is_page, save_figure
from foveate.viewer.report import Section, flat, report_page


@dataclass
class Report:
    """Write one page about a training, also while it runs: curves, what was measured, all settings, and the answers to
    inputs of yours."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a training."""
    input: tuple[str, ...] = ()
    """Inputs whose answers the page shows, with where the model looked; texts, or files of images or sounds."""
    beside: tuple[Path, ...] = ()
    """Other trainings, whose curves are drawn in the same axes, with what was measured."""
    curves: tuple[str, ...] = ()
    """Titles of the curves to draw, such as "loss" or "validation: accuracy"; without them, all."""
    picture: Path | None = None
    """File to draw the curves into as well, such as curves.png."""
    out: Path = Path("report.html")
    """File to write the page to (.html); one that ends in .png, .svg or .pdf gets the curves alone."""


def main(arguments: Sequence[str]) -> None:
    asked = parse(Report, arguments, "report")
    check_utf8(asked.folder)
    check_place(asked.out)
    check_no_part(asked.out, asked.folder, "--out")
    page_wanted = is_page(asked.out)
    if asked.picture is not None:
        check_place(asked.picture)
        check_extension(asked.picture)
        check_no_part(asked.picture, asked.folder, "--picture")
    rows = training_rows(asked.folder)
    curves_of = chosen_curves([asked.folder, *asked.beside], asked.curves)
    for path in (asked.picture, None if page_wanted else asked.out):
        if path is not None:
            if not curves_of:
                raise UserError(f"no curve to draw into {path}: nothing was measured at two steps")
            save_figure(draw_several(curves_of, "step"), path)
    if not page_wanted:
        print(f"wrote {one_line(asked.out)}")
        return
    pictures = [(title, draw(lines, "step", title)) for title, lines in curves_of.items()]
    pictures += [(title, draw(lines, "step", title)) for title, lines in attention_curves(rows).items()]
    sections = [Section("Curves", pictures=pictures), Section("Measured", _measured(rows))]
    sections += [Section(f"Measured: {folder}", _measured(training_rows(folder))) for folder in asked.beside]
    if asked.input:
        sections.append(_answers(asked))
    if (asked.folder / run_dir.CONFIG).is_file():
        settings = run_dir.load(asked.folder).description.get("recipe", {})
        sections.append(Section("All settings", flat(settings), folded=True))
    page = report_page(str(asked.folder), _summary(rows), sections)
    with written(asked.out) as path:
        path.write_text(page, encoding="utf-8")
    print(f"wrote {one_line(asked.out)}: {len(rows):,} rows of metrics, {asked.out.stat().st_size / 1e6:.1f} MB")


def _summary(rows: Sequence[Row]) -> str:
    last = rows[-1]
    epoch, seconds = last.get("epoch"), last.get("seconds")
    summary = f"{last['step']:,} steps, {epoch if number(epoch) else '?'} epochs"
    summary += f", {seconds / 60:,.1f} minutes" if number(seconds) else ""
    final = _final(rows)
    return f"{summary}; kept: {show_value(final.get('kept'))}" if final else f"{summary}; not ended"


def _final(rows: Sequence[Row]) -> dict[str, Any]:
    """Returns the final row; empty where the training has not ended."""
    return next((final for row in reversed(rows) if (final := table(row.get("final")))), {})


def _measured(rows: Sequence[Row]) -> list[list[str]]:
    """A row for each validation, and for what was compared in the end."""
    tables = [(f"step {row['step']:,}", metrics) for row in rows if (metrics := table(row.get("validation")))]
    tables += [(f"in the end: {name}", table(metrics)) for name, metrics in table(_final(rows).get("compared")).items()]
    shown = names(metrics for _, metrics in tables)
    body = [[when, *(_value_text(metrics.get(name)) for name in shown)] for when, metrics in tables]
    return [["", *(name.replace("_", " ") for name in shown)], *body] if tables else []


def _answers(asked: Report) -> Section:
    """Answers the inputs with the trained model, and draws where it looked."""
    task = tasks.load(asked.folder, "cpu")
    given = getattr(task, "expand", list)(list(asked.input))
    answered = list(zip(given, task.answer(given), strict=True))
    pictures = [(text, figure) for text, answer in answered if (figure := task.picture(answer)) is not None]
    return Section("Answers", [[text, answer.line] for text, answer in answered], pictures)


def _value_text(value: Any) -> str:
    return f"{value:.4g}" if number(value) else "" if value is None else show_value(value)
