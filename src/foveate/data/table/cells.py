"""Lines of text as cells: with tabs, or as CSV."""

import csv
import re
import unicodedata
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from foveate.data.text.files import file_lines
from foveate.errors import UserError

DELIMITERS = ",;\t"
"""What may stand between the cells of a CSV file; the first row decides. Where it has none of them, a bar does."""

_NAMED_DELIMITER = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)
"""The first line by which Excel is told the delimiter."""


def tab_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The number and the cells of each line."""
    for number, line in enumerate(file_lines(path), 1):
        yield number, [tidy(cell) for cell in line.split("\t")]


def csv_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The same of CSV, whose quoted cells may hold delimiters and line ends. A first line `sep=;` names the delimiter.

    Raises UserError for what is not CSV.
    """
    lines = file_lines(path)
    first = next(lines, "")
    named = _NAMED_DELIMITER.fullmatch(first)
    usual = max(DELIMITERS, key=first.count)
    delimiter = named[1] if named else usual if usual in first else "|"
    before = 1 if named else 0
    rows = csv.reader(lines if named else chain([first], lines), delimiter=delimiter, strict=True)
    line = 1 + before
    try:
        for cells in rows:
            yield line, [tidy(cell) for cell in cells]
            line = rows.line_num + 1 + before
    except csv.Error as error:
        raise UserError(f"{path}, line {line}: this is not CSV: {error}") from None


def tidy(text: str) -> str:
    """A cell in Unicode NFC without surrounding space."""
    return unicodedata.normalize("NFC", text).strip()
