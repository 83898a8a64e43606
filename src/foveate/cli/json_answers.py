"""What `foveate run --json` prints and `--output` writes, whatever the task: an object or a row for each input."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from foveate.errors import UserError
from foveate.files import check_place, strict_json, written
from foveate.forms.answers import Answer, Failure, answer_values

TABLES = {".csv": ",", ".tsv": "\t"}
"""What separates the cells of a table, by the end of its name."""

LINES = ".jsonl"


def answer_as_json(given: str, answer: Answer | Failure) -> str:
    """The input and the answer to it, in one line of JSON."""
    return strict_json(answer_values(given, answer))


def check_answers_file(path: Path) -> None:
    """Raise UserError for a file of answers that has another end than the layouts, or cannot be written."""
    if path.suffix not in (*TABLES, LINES):
        raise UserError(f"answers are written to {', '.join(TABLES)} and {LINES} files, not to {path}")
    check_place(path)


def write_answers(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write answers as a table with a column for each number and text, or as lines of JSON.

    Of nested values each has a column, "probabilities.spam"; lists stand in a cell as JSON. A row may lack columns.
    """
    with written(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == LINES:
            file.writelines(strict_json(row) + "\n" for row in rows)
            return
        flat = [_flat(row) for row in rows]
        columns = list(dict.fromkeys(name for row in flat for name in row))
        table = csv.DictWriter(file, columns, delimiter=TABLES[path.suffix], lineterminator="\n")
        table.writeheader()
        table.writerows(flat)


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        else:
            found[before + name] = strict_json(value) if isinstance(value, list | bool) else value
    return found
