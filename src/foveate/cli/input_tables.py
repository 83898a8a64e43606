"""The inputs of `foveate run --file` that stand in a table: CSV, JSON, JSON lines or Parquet."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from foveate.data.table import DataTable, check_columns, naming_columns
from foveate.data.table.formats import check_format, format_of
from foveate.data.text.files import read_lines


def read_inputs(path: Path, skill: Any, titles: Sequence[str] = ()) -> Iterator[str]:
    """The inputs of a file: its lines, or, of a table, the cells of the columns that the model reads, with a tab
    between them. Files that a table names are relative to its folder. `titles` says "column=title" where the table has
    other titles than those of the training.

    Raises UserError, which names the line, for what cannot be read, and where a table lacks a column.
    """
    check_format(path)
    if format_of(path) == "tabs":  # lines, of which each is an input
        yield from read_lines(path)
        return
    columns = skill.processor.reads.columns
    keys = {column.key for column in columns}
    learned = check_columns(getattr(skill.recipe.examples, "columns", ()))
    named = {key: title for key, title in learned.items() if key in keys} | check_columns(titles)
    with naming_columns([f"{key}={title}" for key, title in named.items()]):
        rows = DataTable(path, columns, empty_cells=True)
    for row in rows:
        cells = () if row is None else row.cells
        first = [str(path.parent / cells[0])] if cells and skill.takes != "text" else cells[:1]
        yield "\t".join((*first, *cells[1:]))
