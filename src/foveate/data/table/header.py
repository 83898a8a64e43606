"""The header of lines of cells: which columns it names, and when a first line may be one that does not."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from foveate.data.table.columns import Column, naming
from foveate.data.table.several import join_marked
from foveate.errors import UserError

LOOKED_AT = 30
"""Rows below the first line that tell whether it may be a header."""

FEWEST_BELOW = 3
"""Of fewer rows, nothing can be said."""

_NAME = re.compile(r"[^\W\d][\w -]{0,39}")
"""What a column may be called."""

_NUMBER = re.compile(r"[+-]?\d[\d.,]*")


def below_header(
    path: Path, rows: Iterator[tuple[int, list[str]]], columns: Sequence[Column], delimiter: str, further: Column | None
) -> Iterator[tuple[int, tuple[str, ...], str] | None]:
    """The number of each row below a header, the cells of the columns, and that of the further one; None for one that
    is empty. Raises UserError as `DataTable` does."""
    while (row := next(rows, None)) is not None and not any(row[1]):
        yield None
    if row is None:
        return
    line, cells = row
    places, below = _places(cells, columns), list(islice(rows, LOOKED_AT))
    if places is None and (lacking := [name for column in columns if (name := column.missing_in(cells))]):
        raise UserError(f"{path}, line {line}: no column {lacking[0]}; it has {', '.join(cells)}")
    place = None if places is None or further is None else further.place_in(cells, [*chain.from_iterable(places)])
    titles, width = cells, len(columns) if places is None else len(cells)
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
        where = f"{path}, line {number}"
        named = tuple(cells) if places is None else tuple(_cell(titles, cells, own, where) for own in places)
        yield number, named, "" if place is None else cells[place]


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
    missing = [column for column in columns if titles.isdisjoint((column.name, *column.titles))] or columns
    lacks = " and ".join(column.name for column in missing)
    read = ", ".join(f"{column.name} '{cell}'" for column, cell in zip(columns, cells, strict=True))
    between = "<TAB>" if delimiter == "\t" else delimiter
    line = between.join(column.name for column in columns)
    advice = f"name them by {naming(missing)}, or put a line {line} above it"
    return f"this may be a header without {lacks}, or a row ({read}): {advice}"


def _wrong_width(cells: Sequence[str], columns: Sequence[Column], width: int, delimiter: str) -> str:
    """Names what a row should hold."""
    if width != len(columns):
        return f"{len(cells)} cells, but the header names {width}"
    between = "<TAB>" if delimiter == "\t" else delimiter
    expected = between.join(column.name for column in columns)
    if delimiter == "\t":
        return f"{len(cells) - 1} tabs, but a line must be {expected}"
    return f"{len(cells)} cells, but a row must be {expected}, or the first row must name these columns"


def _places(titles: Sequence[str], columns: Sequence[Column]) -> list[tuple[int, ...]] | None:
    """Returns the places of each column below a header, of which one of several labels may have more than one; None
    where the row is not a header with all of them."""
    found: list[tuple[int, ...]] = []
    for column in columns:
        if (places := column.places_in(titles, [*chain.from_iterable(found)])) is None:
            return None
        found.append(places)
    return found


def _cell(titles: Sequence[str], cells: Sequence[str], places: Sequence[int], where: str) -> str:
    """The cell at a place, or that of the labels whose columns say yes."""
    if len(places) == 1:
        return cells[places[0]]
    return join_marked({titles[place]: cells[place] for place in places}, where)
