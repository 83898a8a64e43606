"""Rows of tables: tab-separated lines, CSV, and JSON lines.

A header or the keys of JSON objects name the columns, which then stand in any order, among others. Without a header
they stand in the order that a reader expects, and there are no others.
"""

import csv
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from foveate.data.text.files import file_lines
from foveate.errors import UserError, show_value
from foveate.files import parse_json

DELIMITERS = ",;\t"
"""What may stand between the cells of a CSV file; the first row decides."""


class Column(NamedTuple):
    """A column that a reader looks for in a table."""

    name: str
    """What messages and `name<TAB>name` call it."""
    titles: tuple[str, ...]
    """What else headers call it, in lower case."""


class Row(NamedTuple):
    """The cells that a reader asked for, in its order."""

    line: int
    cells: tuple[str, ...]


TEXT = Column("text", ("sentence", "document", "review", "message", "content", "body"))
LABEL = Column("label", ("class", "category", "sentiment", "intent"))
FIRST = Column("text", ("text1", "text_a", "sentence1", "sentence_a", "first", "premise", "question1"))
SECOND = Column("other text", ("text2", "text_b", "sentence2", "sentence_b", "second", "hypothesis", "question2"))
SOURCE = Column("source", ("src",))
TARGET = Column("target", ("tgt", "translation"))
IMAGE = Column("path", ("image", "file", "filename", "file_name", "image_path", "image_file"))
SOUND = Column("path", ("sound", "audio", "file", "filename", "file_name", "audio_path", "audio_filepath"))
TRANSCRIPT = Column("label", ("transcript", "transcription", "sentence", "text", "class", "category"))
CAPTION = Column("caption", ("text", "description", "sentence", "comment"))
QUESTION = Column("question", ("query",))
ANSWER = Column("answer", ("label", "response"))
CONTEXT = Column("text", ("context", "passage", "document", "paragraph"))
BETTER = Column("better", ("chosen", "preferred"))
WORSE = Column("worse", ("rejected", "dispreferred"))


def read_table(path: Path, columns: Sequence[Column], empty_cells: bool = False) -> Iterator[Row | None]:
    """The rows of a table; None for one that is empty. `.csv`, `.jsonl` and `.ndjson` files, plain or .gz, are read as
    such, any other as lines with tabs between the cells.

    Raises UserError, which names the line, for a row of other columns and, unless `empty_cells`, for an empty cell.
    """
    form = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if form in ("jsonl", "ndjson"):
        rows = _json_rows(path, columns)
    elif form == "csv":
        rows = _by_header(path, _csv_cells(path), columns, ",")
    else:
        rows = _by_header(path, _tab_cells(path), columns, "\t")
    for row in rows:
        if row is not None and not empty_cells and "" in row.cells:
            raise UserError(f"{path}, line {row.line}: the {columns[row.cells.index('')].name} is empty")
        yield row


def _tab_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(file_lines(path), 1):
        yield number, [_tidy(cell) for cell in line.split("\t")]


def _csv_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Quoted cells may hold delimiters and line ends."""
    lines = file_lines(path)
    first = next(lines, "")
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(_chain(first, lines), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            yield line, [_tidy(cell) for cell in cells]
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}, line {line}: this is not CSV: {error}") from None


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _by_header(
    path: Path, rows: Iterator[tuple[int, list[str]]], columns: Sequence[Column], delimiter: str
) -> Iterator[Row | None]:
    places: Sequence[int] | None = None
    width = len(columns)
    for number, cells in rows:
        if not any(cells):
            yield None
            continue
        if places is None:
            header = _places([cell.lower() for cell in cells], columns)
            places, width = header or range(len(columns)), len(cells) if header else width
            if header:
                continue
        while len(cells) > width and not cells[-1]:
            cells.pop()
        if len(cells) != width:
            raise UserError(f"{path}, line {number}: {_wrong_width(cells, columns, width, delimiter)}")
        yield Row(number, tuple(cells[place] for place in places))


def _wrong_width(cells: Sequence[str], columns: Sequence[Column], width: int, delimiter: str) -> str:
    """Names what a row should hold."""
    if width != len(columns):
        return f"{len(cells)} cells, but the header names {width}"
    between = "<TAB>" if delimiter == "\t" else delimiter
    expected = between.join(column.name for column in columns)
    if delimiter == "\t":
        return f"{len(cells) - 1} tabs, but a line must be {expected}"
    return f"{len(cells)} cells, but a row must be {expected}, or the first row must name these columns"


def _places(titles: Sequence[str], columns: Sequence[Column]) -> list[int] | None:
    """Returns the place of each column below a header; None where the row is not a header with all of them."""
    found = []
    for column in columns:
        places = [titles.index(name) for name in (column.name, *column.titles) if name in titles]
        if not (free := [place for place in places if place not in found]):
            return None
        found.append(free[0])
    return found


def _json_rows(path: Path, columns: Sequence[Column]) -> Iterator[Row | None]:
    for number, line in enumerate(file_lines(path), 1):
        if not line.strip():
            yield None
            continue
        where = f"{path}, line {number}"
        values = parse_json(line, where)
        if not isinstance(values, dict):
            raise UserError(f"{where}: a line must be a JSON object, not {show_value(values)}")
        yield Row(number, tuple(_json_cell(values, column, where) for column in columns))


def _json_cell(values: Mapping[str, Any], column: Column, where: str) -> str:
    names = (column.name, *column.titles)
    name = next((name for name in names if name in values), None)
    if name is None:
        raise UserError(f"{where}: no {column.name}; it may be called {', '.join(names)}")
    value = values[name]
    if value is None:
        return ""
    if not isinstance(value, str | int | float):
        raise UserError(f"{where}: the {name} is {show_value(value)}, but must be a text or a number")
    return _tidy(str(value))


def _tidy(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip()
