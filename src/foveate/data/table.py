"""Rows of tables: tab-separated lines, CSV, and JSON lines.

A header or the keys of JSON objects name the columns, which then stand in any order, among others. Without a header
they stand in the order that a reader expects, and there are no others.
"""

import csv
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from foveate.data.text.files import file_lines
from foveate.errors import UserError, show_value
from foveate.files import parse_json

DELIMITERS = ",;\t"
"""What may stand between the cells of a CSV file; the first row decides."""


LOOKED_AT = 30
"""Rows below the first line that tell whether it may be a header."""

FEWEST_BELOW = 3
"""Of fewer rows, nothing can be said."""

_NAME = re.compile(r"[^\W\d][\w -]{0,39}")
"""What a column may be called."""

_NUMBER = re.compile(r"[+-]?\d[\d.,]*")


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
    origin: str = ""
    """The cell of the column that says where a row comes from, for a table that has one."""


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
SPEAKER = Column("speaker", ("speaker_id", "client_id"))
DOCUMENT = Column("document_id", ("doc_id", "title", "article"))
BETTER = Column("better", ("chosen", "preferred"))
WORSE = Column("worse", ("rejected", "dispreferred"))


def read_table(
    path: Path, columns: Sequence[Column], empty_cells: bool = False, origin: Column | None = None
) -> Iterator[Row | None]:
    """The rows of a table; None for one that is empty. `.csv`, `.jsonl` and `.ndjson` files, plain or .gz, are read as
    such, any other as lines with tabs between the cells. A header may name a further column, `origin`.

    Raises UserError, which names the line, for a row of other columns, for a first line that may be a header but does
    not name the columns, and, unless `empty_cells`, for an empty cell.
    """
    form = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if form in ("jsonl", "ndjson"):
        rows = _json_rows(path, columns, origin)
    elif form == "csv":
        rows = _by_header(path, _csv_cells(path), columns, ",", origin)
    else:
        rows = _by_header(path, _tab_cells(path), columns, "\t", origin)
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
    path: Path, rows: Iterator[tuple[int, list[str]]], columns: Sequence[Column], delimiter: str, origin: Column | None
) -> Iterator[Row | None]:
    while (row := next(rows, None)) is not None and not any(row[1]):
        yield None
    if row is None:
        return
    line, cells = row
    titles = [cell.lower() for cell in cells]
    places, below = _places(titles, columns), list(islice(rows, LOOKED_AT))
    further = None if places is None or origin is None else _place_of(origin, titles, places)
    width = len(columns) if places is None else len(cells)
    if places is None and len(cells) == width and _may_be_header(cells, columns, [row for _, row in below]):
        raise UserError(f"{path}, line {line}: {_two_readings(cells, columns, delimiter)}")
    first = [(line, cells)] if places is None else []
    for number, cells in chain(first, below, rows):
        if not any(cells):
            yield None
            continue
        while len(cells) > width and not cells[-1]:
            cells.pop()
        if len(cells) != width:
            raise UserError(f"{path}, line {number}: {_wrong_width(cells, columns, width, delimiter)}")
        named = tuple(cells[place] for place in places or range(width))
        yield Row(number, named, "" if further is None else cells[further])


def _may_be_header(cells: Sequence[str], columns: Sequence[Column], below: Sequence[Sequence[str]]) -> bool:
    """Whether a first line that does not name the columns looks like a header: each cell is a name, and one is the
    title of a column, or all are unlike what stands below them."""
    if not all(map(_NAME.fullmatch, cells)):
        return False
    values = [[row[place] for row in below if len(row) == len(cells)] for place in range(len(cells))]
    new = [cell not in own for cell, own in zip(cells, values, strict=True)]
    titles = {title for column in columns for title in (column.name, *column.titles)}
    titled = any(cell.lower() in titles and is_new for cell, is_new in zip(cells, new, strict=True))
    return titled or (len(values[0]) >= FEWEST_BELOW and all(new) and all(map(_is_unlike, cells, values)))


def _is_unlike(cell: str, values: Sequence[str]) -> bool:
    """Whether the values below a new cell are few different ones, or numbers, or none of them is one word as it is."""
    if 2 * len(set(values)) <= len(values) or all(map(_NUMBER.fullmatch, values)):
        return True
    return " " not in cell and not any(_NAME.fullmatch(value) and " " not in value for value in values)


def _two_readings(cells: Sequence[str], columns: Sequence[Column], delimiter: str) -> str:
    """Names what a first line may be."""
    titles = {cell.lower() for cell in cells}
    missing = [column.name for column in columns if titles.isdisjoint((column.name, *column.titles))]
    lacks = " and ".join(missing or [column.name for column in columns])
    read = ", ".join(f"{column.name} '{cell}'" for column, cell in zip(columns, cells, strict=True))
    between = "<TAB>" if delimiter == "\t" else delimiter
    line = between.join(column.name for column in columns)
    return f"this may be a header without {lacks}, or a row ({read}): rename its columns, or put a line {line} above it"


def _wrong_width(cells: Sequence[str], columns: Sequence[Column], width: int, delimiter: str) -> str:
    """Names what a row should hold."""
    if width != len(columns):
        return f"{len(cells)} cells, but the header names {width}"
    between = "<TAB>" if delimiter == "\t" else delimiter
    expected = between.join(column.name for column in columns)
    if delimiter == "\t":
        return f"{len(cells) - 1} tabs, but a line must be {expected}"
    return f"{len(cells)} cells, but a row must be {expected}, or the first row must name these columns"


def _place_of(column: Column, titles: Sequence[str], taken: Sequence[int]) -> int | None:
    """Returns the place of a column that a header may name, beside those that are taken."""
    names = (column.name, *column.titles)
    return next((place for place, title in enumerate(titles) if title in names and place not in taken), None)


def _places(titles: Sequence[str], columns: Sequence[Column]) -> list[int] | None:
    """Returns the place of each column below a header; None where the row is not a header with all of them."""
    found = []
    for column in columns:
        places = [titles.index(name) for name in (column.name, *column.titles) if name in titles]
        if not (free := [place for place in places if place not in found]):
            return None
        found.append(free[0])
    return found


def _json_rows(path: Path, columns: Sequence[Column], origin: Column | None) -> Iterator[Row | None]:
    for number, line in enumerate(file_lines(path), 1):
        if not line.strip():
            yield None
            continue
        where = f"{path}, line {number}"
        values = parse_json(line, where)
        if not isinstance(values, dict):
            raise UserError(f"{where}: a line must be a JSON object, not {show_value(values)}")
        cells = tuple(_json_cell(values, column, where) for column in columns)
        known = origin is not None and any(name in values for name in (origin.name, *origin.titles))
        yield Row(number, cells, _json_cell(values, origin, where) if origin is not None and known else "")


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
