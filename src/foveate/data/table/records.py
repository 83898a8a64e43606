"""Rows whose values have names: JSON, JSON lines and Parquet."""

import gzip
import io
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from foveate import limits
from foveate.data.table.cells import tidy
from foveate.data.table.columns import LABEL, Column, naming
from foveate.data.table.formats import format_of
from foveate.data.table.several import join_listed, join_marked
from foveate.data.text.files import GZIP, UTF_16, file_lines
from foveate.errors import UserError, show_value
from foveate.files import parse_json

TOLD = 10
"""Titles of a table that an error tells: some have thousands."""


class Record(NamedTuple):
    """The values of a row by their names."""

    number: int
    where: str
    """The place, for messages."""
    values: Mapping[str, Any]
    unit: str = "row"
    """What the number counts: rows, or lines."""


def cell_of(record: Record, column: Column) -> str:
    """The value of a column as a text. Raises UserError where there is none, or it is a list or a table."""
    name, value = named_value(record, column)
    if isinstance(value, dict) and isinstance(value.get("text"), list):  # answers of SQuAD, of which there may be none
        value = next(iter(value["text"]), None)
    if value is None:
        return ""
    if isinstance(value, list) and column.name == LABEL.name:
        if not column.several:
            raise UserError(f"{record.where}: the {name} is a list; --several reads more than one label")
        return tidy(join_listed(value, record.where))
    if not isinstance(value, str | int | float):
        raise UserError(f"{record.where}: the {name} is {show_value(value)}, but must be a text or a number")
    return tidy(str(value))


def named_value(record: Record, column: Column) -> tuple[str, Any]:
    """What a row calls a column, and its value. Raises UserError where there is none."""
    titles = [*record.values]
    places = column.places_in(titles)
    if places is None:
        advice = "" if column.chosen else f": name it by {naming([column])}"
        more = f" and {len(titles) - TOLD:,} more" if len(titles) > TOLD else ""
        has = f"it has {', '.join(titles[:TOLD])}{more}{advice}" if titles else "it is empty"
        raise UserError(f"{record.where}: no {column.missing_in(titles) or column.name}; {has}")
    if len(places) > 1:
        marks = {titles[place]: record.values[titles[place]] for place in places}
        return column.chosen, join_marked({name: str(mark or "") for name, mark in marks.items()}, record.where)
    name = titles[places[0]]
    return name, record.values[name]


def json_records(path: Path) -> Iterator[Record | None]:
    """The objects of JSON lines, or of a JSON document: a list, or an object that holds one list or only objects.

    None stands for an empty line. Raises UserError for anything else.
    """
    lines = file_lines(path)
    if format_of(path) == "json" and (document := _document(path)) is not None:
        for number, values in enumerate(_rows_of(document, path), 1):
            yield _record(number, f"{path}, row {number}", values, "row")
        return
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        yield _record(number, where, parse_json(line, where), "line") if line.strip() else None


def _record(number: int, where: str, values: Any, unit: str) -> Record:
    if not isinstance(values, dict):
        raise UserError(f"{where}: a {unit} must be a JSON object, not {show_value(values)}")
    return Record(number, where, values, unit)


def _document(path: Path) -> Any | None:
    """The value of a file that is one JSON document; None where each of its lines is an object, as NeMo writes."""
    text = whole_text(path)
    lines = (line.strip() for line in io.StringIO(text) if line.strip())
    first, second = next(lines, ""), next(lines, "")
    if first.startswith("{") and first.endswith("}") and second.startswith("{"):
        return None
    return parse_json(text, path)


def whole_text(path: Path) -> str:
    """The text of a file, plain or .gz, whose lines may have any length: other tools write JSON in one.

    Raises UserError beyond the size of a table.
    """
    content = _content(path)
    encoding = "utf-16" if content[:2] in UTF_16 else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        name = "UTF-16" if encoding == "utf-16" else "UTF-8"
        raise UserError(
            f"{path} is not {name}: byte {error.start:,} of it is {error.object[error.start]:#04x}"
        ) from None


def _content(path: Path) -> bytes:
    """The bytes of a file, unpacked where it is compressed."""
    limits.check_file(path, limits.TABLE)
    try:
        with path.open("rb") as file:
            packed = path.suffix.lower() == ".gz" or file.peek(2)[:2] == GZIP
            content = (gzip.GzipFile(fileobj=file) if packed else file).read(limits.TABLE + 1)
    except FileNotFoundError:
        raise UserError(f"there is no file {path}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > limits.TABLE:
        raise UserError(f"{path} holds more than {limits.TABLE // 2**20:,} MiB")
    return content


def _rows_of(document: Any, path: Path) -> list[Any]:
    if isinstance(document, list):
        return document
    if isinstance(document, dict):
        lists = [name for name, value in document.items() if isinstance(value, list)]
        if len(lists) == 1:
            return list(document[lists[0]])
        if document and all(isinstance(value, dict) for value in document.values()):
            return list(document.values())
        if document and not any(isinstance(value, list | dict) for value in document.values()):
            return [document]  # one row, as a file of JSON lines has it
        if lists:
            raise UserError(f"{path} holds the lists {', '.join(lists)}: a table is one list of objects")
    raise UserError(f"{path}: a table in JSON is a list of objects, not {show_value(document)}")


def parquet_records(path: Path) -> Iterator[Record]:
    """The rows of a Parquet file. Raises UserError for a damaged one, and without pyarrow."""
    for number, values in enumerate(parquet_rows(path), 1):
        yield Record(number, f"{path}, row {number}", values)


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The same as plain values. Numbers of classes become their names, where the file has these."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise UserError("Parquet files need the package pyarrow: pip install 'foveate[hub]'") from None
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    try:
        with parquet.ParquetFile(_unpacked(path)) as file:
            names = _class_names(file.schema_arrow.metadata or {})
            for batch in file.iter_batches(batch_size=1000):
                for row in batch.to_pylist():
                    yield {name: _named(value, names[name]) if name in names else value for name, value in row.items()}
    except (OSError, ValueError, ArrowException) as error:
        raise UserError(f"{path} is damaged: {' '.join(str(error).split())[:200]}") from None


def _unpacked(path: Path) -> Path | io.BytesIO:
    """What a Parquet file is read from; a compressed one is held in memory."""
    return io.BytesIO(_content(path)) if path.suffix.lower() == ".gz" else path


def _class_names(metadata: dict[bytes, bytes]) -> dict[str, list[str]]:
    """The names of the classes of each column, as the hub's library notes them in a Parquet file."""
    try:
        features = parse_json(metadata.get(b"huggingface", b"{}"), "the metadata").get("info", {}).get("features", {})
    except (ValueError, AttributeError):
        return {}
    found = {}
    for column, feature in features.items() if isinstance(features, dict) else ():
        inner = feature.get("feature", feature) if isinstance(feature, dict) else {}
        names = inner.get("names") if isinstance(inner, dict) else None
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            found[column] = names
    return found


def _named(value: Any, names: list[str]) -> Any:
    if isinstance(value, list):
        return [_named(one, names) for one in value]
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value
