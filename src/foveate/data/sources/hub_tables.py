"""Tables of a data set of the hub, as text files that tasks read: hub:org/name, hub:org/name:SPLIT:COLUMN,COLUMN.

Parquet, JSONL, CSV and TSV files are read; a script of a data set is never fetched. A file of text is written into the
cache, once for each way to read the data set.
"""

import csv
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from foveate.data.sources.cache import fetched
from foveate.data.sources.hub import PREFIX, HubFile, Repository, fetch_files, repository
from foveate.data.table import ALIKE
from foveate.data.table.records import parquet_rows
from foveate.data.text.conversations import FIELDS
from foveate.errors import UserError
from foveate.files import parse_json

Form = Literal["labelled", "parallel", "alike", "tagged", "prose", "rows"]
"""What a file of text holds: "rows" are written as they are, for readers that know tables and their columns, and so are
conversations, and pairs with a label or a score that says whether they are alike."""

DATA = 8 * 2**30
"""Bytes of a data set that are fetched."""

TEXT_ENDS = {"prose": "txt"}
"""How the name of a file of text ends, where it is no table."""

ENDS = (".parquet", ".jsonl", ".csv", ".tsv")
"""What is read, the first that there is."""

LONGEST_LINE = 2**20
"""Characters of a line of JSON or of a field of CSV."""

PAIRED = (
    ("source", "src", "anchor", "sentence1", "premise", "query", "question"),
    ("target", "tgt", "positive", "sentence2", "hypothesis", "answer"),
)

COLUMNS: dict[Form, tuple[tuple[str, ...], ...]] = {
    "labelled": (
        ("label", "labels", "class", "category", "sentiment"),
        ("text", "sentence", "content", "review", "document"),
    ),
    "parallel": PAIRED,
    "alike": PAIRED,
    "tagged": (("tokens", "words"), ("tags", "pos_tags", "upos", "ner_tags")),
    "prose": (("text", "content", "document", "sentence"),),
    "rows": (),
}
"""Usual names of the columns that each form of text needs, in order."""

SPLITS = re.compile(r"(?:^|[/._-])(train|validation|valid|dev|test)(?=[/._-]|\d|$)")


@dataclass(frozen=True)
class HubTable:
    """The table that "hub:org/name:SPLIT:COLUMN,COLUMN" names. A split may have a part before it: "en/train"."""

    found: Repository
    split: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, name: str) -> "HubTable":
        """Raises UserError for any other name."""
        path, *more = name.removeprefix(PREFIX).split(":")
        if len(more) > 2:
            raise UserError(
                f"{name} has too many colons; it is hub:NAME, hub:NAME:SPLIT or hub:NAME:SPLIT:COLUMN,COLUMN"
            )
        split, columns = [*more, "", ""][:2]
        if not re.fullmatch(r"[\w.+/-]*", split) or ".." in split or split.startswith("/"):
            raise UserError(f"{name}: {split} is not a name of a split, such as train or en/train")
        return cls(repository(f"{PREFIX}{path}"), split or "train", tuple(filter(None, columns.split(","))))


def hub_text(
    name: str,
    form: Form,
    languages: tuple[str, str] | None,
    announce: Callable[[str], None],
    titles: Sequence[str] = (),
) -> Path:
    """A text file in the cache with the rows of a data set of the hub, in a form that tasks read. `titles` are what a
    task calls the columns of "rows", which the name may list.

    Raises UserError, in one line, for a data set that is not there, has no table, or lacks the columns.
    """
    table = HubTable.of(name)
    asked = json.dumps([table.split, table.columns, form, languages, titles])
    key = hashlib.sha256(asked.encode()).hexdigest()[:8]
    split = table.split.replace("/", "--")

    def fetch(folder: Path) -> None:
        def choose(files: Sequence[HubFile]) -> list[HubFile]:
            return choose_files(str(table.found), files, table.split)

        def tell(place: Path) -> None:
            announce(f"fetching {table.found} into {place}; see the licence on its page")

        files = fetch_files(table.found, "dataset", choose, DATA, tell, split)
        paths = sorted(path for path in files.rglob("*") if path.suffix in ENDS)
        rows = (row for path in paths for row in read_rows(path))
        first = next(rows, {})
        as_it_is = form == "rows" or (not table.columns and is_read_whole(first, form))
        path = folder / f"{split}.{'jsonl' if as_it_is else TEXT_ENDS.get(form, 'tsv')}"
        if as_it_is:
            write_rows(path, chain([first], rows), table, titles)
        else:
            _write(path, chain([first] if first else [], rows), table, form, languages)

    place = fetched(f"{table.found.folder('dataset')}--text-{key}", fetch, lambda place: None)
    return next(place.glob(f"{split}.*"))


def is_read_whole(row: Mapping[str, Any], form: Form) -> bool:
    """Whether a row is a conversation, or a pair with what says whether it is alike."""
    if form == "prose":
        return any(isinstance(row.get(name), list) for name in ("prompt", *FIELDS))
    return form == "alike" and not row.keys().isdisjoint((ALIKE.name, *ALIKE.titles))


def is_answered(row: Mapping[str, Any]) -> bool:
    """Whether there is something in a row, and an answer where it is a question as SQuAD has them."""
    answers = row.get("answers")
    return bool(row) and not (isinstance(answers, Mapping) and answers.get("text") == [])


def write_rows(path: Path, rows: Iterable[dict[str, Any]], table: HubTable, titles: Sequence[str]) -> None:
    """Write JSON lines, the columns that were named by the titles of the task. Raises UserError where one is missing.

    Rows without a value in one of them are left out.
    """
    named = dict(zip(titles, table.columns, strict=False))
    if table.columns and len(table.columns) != len(titles):
        wanted = ", ".join(titles)
        raise UserError(f"{table.found}: the columns here are {wanted}, but {len(table.columns)} are named")
    empty = True
    with path.open("w", encoding="utf-8") as file:
        for row in filter(is_answered, rows):
            missing = [name for name in named.values() if _value(row, name) is None and name not in row]
            if empty and missing:
                raise UserError(f"{table.found} has no column {missing[0]}; it has {', '.join(map(str, row))}")
            empty, chosen = False, {title: _value(row, name) for title, name in named.items()} or row
            if not named or None not in chosen.values():
                file.write(json.dumps(chosen, ensure_ascii=False, default=str) + "\n")
    if empty:
        raise UserError(f"{table.found} has no rows")


def choose_files(name: str, files: Sequence[HubFile], split: str) -> list[HubFile]:
    """The tables of a split, all of one format. A data set whose names tell no splits is all for training."""
    for end in ENDS:
        tables = [file for file in files if file.path.endswith(end)]
        if tables:
            break
    else:
        raise UserError(f"{name} has no {', '.join(ENDS[:-1])} or {ENDS[-1]} file; scripts of data sets are never run")
    part, _, wanted = split.rpartition("/")
    tables = [file for file in tables if not part or f"/{file.path}".startswith(f"/{part}/")]
    splits = {file.path: match[-1] for file in tables if (match := SPLITS.findall(file.path))}
    chosen = [file for file in tables if splits.get(file.path) == wanted]
    if not chosen and wanted == "train" and not splits:
        chosen = tables
    if not chosen:
        known = ", ".join(sorted(set(splits.values()))) or "none by name"
        raise UserError(f"{name} has no split {split}; its splits: {known}")
    folders = sorted({file.path.rpartition("/")[0] for file in chosen})
    if len(folders) > 1:
        raise UserError(f"{name} has several parts: name one, such as hub:NAME:{folders[0]}/{wanted}")
    return chosen


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a table, one after the other. Numbers of classes become their names, where the file has these.

    Raises UserError, in one line, for a damaged file.
    """
    try:
        if path.suffix == ".parquet":
            yield from parquet_rows(path)
        elif path.suffix == ".jsonl":
            with path.open(encoding="utf-8") as file:
                while line := file.readline(LONGEST_LINE + 1):
                    if len(line) > LONGEST_LINE:
                        raise ValueError(f"a line has more than {LONGEST_LINE:,} characters")
                    row = parse_json(line, path) if line.strip() else {}
                    if not isinstance(row, dict):
                        raise ValueError("a line is no JSON object")
                    if row:
                        yield row
        else:
            csv.field_size_limit(LONGEST_LINE)
            with path.open(encoding="utf-8-sig", newline="") as file:
                yield from csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
    except UserError:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(f"{path} is damaged: {' '.join(str(error).split())[:200]}") from None


def _write(
    path: Path, rows: Iterable[dict[str, Any]], table: HubTable, form: Form, languages: tuple[str, str] | None
) -> None:
    columns: list[str] = []
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            columns = columns or _columns(row, table, form, languages)
            if None in (values := [_value(row, column) for column in columns]):
                continue
            file.write(_text(values, form, f"{table.found}: {columns[0]}"))
    if not columns:
        raise UserError(f"{table.found} has no rows")


def _columns(row: dict[str, Any], table: HubTable, form: Form, languages: tuple[str, str] | None) -> list[str]:
    """The columns to read: those that were named, or those with a usual name."""
    wanted, there = COLUMNS[form], ", ".join(map(str, row))
    if table.columns:
        if len(table.columns) != len(wanted):
            raise UserError(f"{table.found}: {len(wanted)} columns are needed here, not {len(table.columns)}")
        if missing := [column for column in table.columns if _value(row, column) is None and column not in row]:
            raise UserError(f"{table.found} has no column {missing[0]}; it has {there}")
        return list(table.columns)
    if languages and form in ("parallel", "alike"):
        wanted = tuple(
            (f"translation.{language}", language, *names) for language, names in zip(languages, wanted, strict=True)
        )
    found = [next((name for name in names if _value(row, name) is not None), "") for names in wanted]
    if "" in found:
        form_of = "hub:NAME:SPLIT:" + ",".join(["COLUMN"] * len(wanted))
        raise UserError(f"{table.found} has the columns {there}: name those to read, {form_of}")
    return found


def _value(row: dict[str, Any], column: str) -> Any:
    """The value of a column, or of a field in it: "translation.en"."""
    if column in row:
        return row[column]
    name, _, rest = column.partition(".")
    inner = row.get(name)
    return _value(inner, rest) if rest and isinstance(inner, dict) else None


def _text(values: Sequence[Any], form: Form, where: str) -> str:
    if form == "prose":
        return str(values[0]).strip() + "\n\n"
    if form == "tagged":
        if not all(isinstance(value, list) for value in values) or len(values[0]) != len(values[1]):
            raise UserError(f"{where} and its tags must be two lists of the same length in each row")
        pairs = zip(*values, strict=True)
        return "".join(f"{_line(word)}\t{_line(tag)}\n" for word, tag in pairs if _line(word) and _line(tag)) + "\n"
    sides = [_line(value) for value in values]
    return "\t".join(sides) + "\n" if all(sides) else ""


def _line(value: Any) -> str:
    """A value in one line without tabs."""
    return " ".join(str(value).split())
