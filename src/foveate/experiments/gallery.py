"""`foveate gallery`: makes pictures of the documentation, each by the commands of its row.

Each command runs in a process of its own, so that a failure ends its row and nothing else, and ends with the gallery.
"""

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from foveate.child_processes import child_environment
from foveate.errors import UserError, unknown
from foveate.experiments.gallery_page import GalleryEntry, gallery_page
from foveate.experiments.gallery_rows import ROWS, GalleryRow
from foveate.files import check_writable, written

PAGE = "index.html"
LOG = "log.txt"
"""File in a row's folder with everything that its commands printed."""


def find_rows(names: Sequence[str], budget: float | None) -> list[GalleryRow]:
    """The rows of these names, or all without names; with a budget in minutes, those that fit, in order.

    Raises UserError for an unknown name and where nothing fits.
    """
    known = {row.name: row for row in ROWS}
    for name in names:
        if name not in known:
            raise unknown("picture", name, known)
    asked = [known[name] for name in dict.fromkeys(names)] if names else list(ROWS)
    if budget is None:
        return asked
    fitting, left = [], budget
    for row in asked:
        if row.minutes <= left:
            fitting.append(row)
            left -= row.minutes
    if not fitting:
        least = min(asked, key=lambda row: row.minutes)
        raise UserError(f"nothing fits in {budget:g} minutes: {least.name} takes {least.minutes:g}")
    return fitting


def build_gallery(rows: Sequence[GalleryRow], out: Path, tell: Callable[[str], None]) -> list[str]:
    """Make the rows and the page `out`/index.html, which also shows what was made there before.

    Returns the names of the rows that failed. The page is written anew after each row, so that it can be read early.
    Raises UserError where `out` cannot be written to.
    """
    check_writable(out)
    problems: dict[str, str] = {}
    for row in rows:
        tell(f"{row.name}: about {row.minutes:g} minutes")
        problem = _make(row, out / row.name)
        if problem:
            problems[row.name] = problem
            tell(f"{row.name}: {problem}")
        with written(out / PAGE) as path:
            path.write_text(gallery_page(_entries(rows, out, problems)), encoding="utf-8")
    return list(problems)


def command_line(command: str, folder: Path) -> list[str]:
    """The words of a row's command, with its folder."""
    return [word.replace("{out}", str(folder)) for word in shlex.split(command)]


def _make(row: GalleryRow, folder: Path) -> str:
    """Run the commands of a row. Returns what went wrong, or an empty text."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOG).open("w", encoding="utf-8") as log:
        for command in row.commands:
            words = command_line(command, folder)
            log.write(f"$ {shlex.join(['foveate', *words])}\n")
            log.flush()
            process = [sys.executable, "-m", "foveate", *words]
            done = subprocess.run(
                process,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=child_environment(),
            )
            if done.returncode:
                return f"`foveate {words[0]}` ended with status {done.returncode}; {folder / LOG} has its output"
    missing = [name for name in row.results if not (folder / name).is_file()]
    return f"{missing[0]} was not written; {folder / LOG} has the output" if missing else ""


def _entries(asked: Iterable[GalleryRow], out: Path, problems: dict[str, str]) -> list[GalleryEntry]:
    """Returns the entries of the page: rows that were asked for or made before, in the order of the list."""
    wanted, entries = {row.name for row in asked}, []
    for row in ROWS:
        files = [f"{row.name}/{name}" for name in row.results if (out / row.name / name).is_file()]
        if files or row.name in wanted:
            commands = [shlex.join(["foveate", *command_line(command, out / row.name)]) for command in row.commands]
            entries.append(GalleryEntry(row.name, row.shows, commands, files, row.page, problems.get(row.name, "")))
    return entries
