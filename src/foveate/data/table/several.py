"""Several labels in a row: as a|b in a cell, as a list in JSON, or as a column of yes and no for each."""

from collections.abc import Iterable, Mapping, Sequence

from foveate.errors import UserError, show_value

SEPARATOR = "|"
"""Stands between the labels of a cell."""

YES, NO = ("1", "1.0", "true", "yes", "x"), ("0", "0.0", "false", "no", "", "-")
"""What the cells of a label's own column may hold, in lower case."""


def separate(cell: str) -> list[str]:
    """The labels of a cell, each once."""
    return list(dict.fromkeys(label for part in cell.split(SEPARATOR) if (label := part.strip())))


def join(labels: Iterable[str]) -> str:
    """The cell of some labels."""
    return SEPARATOR.join(labels)


def join_listed(values: Sequence[object], where: str) -> str:
    """The cell of a list of labels. Raises UserError for what is not a list of texts or numbers, or has a bar."""
    for value in values:
        if not isinstance(value, str | int | float) or SEPARATOR in str(value):
            raise UserError(f"{where}: a label is {show_value(value)}, but must be a text without '{SEPARATOR}'")
    return join(str(value).strip() for value in values)


def join_marked(marks: Mapping[str, str], where: str) -> str:
    """The cell of the labels whose own columns say yes. Raises UserError for a cell that says neither yes nor no."""
    for label, mark in marks.items():
        if mark.lower() not in (*YES, *NO):
            raise UserError(f"{where}: the column {label} says {show_value(mark)}, but must say 1 or 0, or yes or no")
    return join(label for label, mark in marks.items() if mark.lower() in YES)
