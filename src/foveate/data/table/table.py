"""Rows of tables: lines with tabs, CSV, JSON, JSON lines and Parquet.

A header or the keys of JSON objects name the columns, which then stand in any order, among others. Without a header
they stand in the order that a reader expects, and there are no others.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from foveate.data.table.cells import csv_cells, tab_cells
from foveate.data.table.columns import Column, chosen_columns
from foveate.data.table.formats import Format, check_format, format_of
from foveate.data.table.header import below_header
from foveate.data.table.records import Record, cell_of, json_records, named_value, parquet_records
from foveate.errors import UserError


class Row(NamedTuple):
    """The cells that a reader asked for, in its order."""

    line: int
    """The number of the line, or of the row of a file without lines."""
    cells: tuple[str, ...]
    origin: str = ""
    """The cell of the further column, for a table that has one."""
    unit: str = "line"
    """What the number counts: lines, or rows of a file without lines."""

    @property
    def place(self) -> str:
        """Where it stands, for messages: "line 7"."""
        return f"{self.unit} {self.line}"


class DataTable:
    """The rows of a file, read anew at each iteration; None for a row that is empty.

    The ending of the name, before one of .gz, says the format: see `formats.FORMATS`. A header may name a `further`
    column, such as the one that says where a row comes from.

    Iterating raises UserError, which names the line, for a row of other columns, for a first line that may be a header
    but does not name the columns, and, unless `empty_cells`, for an empty cell.
    """

    def __init__(
        self,
        path: Path,
        columns: Sequence[Column],
        empty_cells: bool = False,
        further: Column | None = None,
        form: Format | None = None,
    ) -> None:
        """`form` is the format of a file whose name says another one.

        Raises UserError for a format that is not read, and where `naming_columns` names others."""
        check_format(path)
        self._form = form or format_of(path)
        self.path, self._empty_cells = path, empty_cells
        found = chosen_columns(columns, [further] if further else [])
        self._columns, self._further = found[: len(columns)], found[-1] if further else None

    def __iter__(self) -> Iterator[Row | None]:
        for row in self._rows():
            if row is not None and not self._empty_cells:
                self._check_filled(row)
            yield row

    def _check_filled(self, row: Row) -> None:
        for column, cell in zip(self._columns, row.cells, strict=True):
            if not cell and not column.several:
                raise UserError(f"{self.path}, {row.place}: the {column.name} is empty")

    def _rows(self) -> Iterator[Row | None]:
        if self._form in ("csv", "tabs"):
            delimiter, cells = ("\t", tab_cells) if self._form == "tabs" else (",", csv_cells)
            for found in below_header(self.path, cells(self.path), self._columns, delimiter, self._further):
                yield None if found is None else Row(*found)
            return
        for record in self._records():
            yield None if record is None else self._row(record)

    def records(self) -> Iterator[Record | None]:
        """The rows of a format whose values may be lists: our names of the columns, and the values. There is none of
        lines of cells."""
        for record in self._records() if self._form not in ("csv", "tabs") else ():
            yield None if record is None else record._replace(values=self._own_values(record))

    def _records(self) -> Iterator[Record | None]:
        return parquet_records(self.path) if self._form == "parquet" else json_records(self.path)

    def _own_values(self, record: Record) -> dict[str, Any]:
        further = self._further
        known = further is not None and further.place_in([*record.values]) is not None
        columns = [*self._columns, *([further] if further is not None and known else [])]
        return {column.name: named_value(record, column)[1] for column in columns}

    def _row(self, record: Record) -> Row:
        cells = tuple(cell_of(record, column) for column in self._columns)
        further = self._further
        known = further is not None and further.place_in([*record.values]) is not None
        origin = cell_of(record, further) if further is not None and known else ""
        return Row(record.number, cells, origin, record.unit)
