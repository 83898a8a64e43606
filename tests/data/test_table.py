"""Tables: every reader of rows reads lines with tabs, CSV and JSON lines, with columns in any order below a header."""

import csv
import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pyarrow.parquet
import pytest

from foveate.data import table
from foveate.data.images.captions import captioned_images
from foveate.data.images.labelled import labelled_images
from foveate.data.images.questions import image_questions
from foveate.data.images.word_images import word_images
from foveate.data.sounds.labelled import labelled_sounds
from foveate.data.sounds.wav import write_wave
from foveate.data.table import TEXT, Column, DataTable, naming_columns
from foveate.data.table.formats import NOT_READ
from foveate.data.text.facts import text_questions
from foveate.data.text.files import MOST_BYTES_OF_LINE
from foveate.data.text.labelled import LabelledText
from foveate.data.text.labelled_pairs import read_labelled_pairs
from foveate.data.text.parallel_corpus import ParallelText
from foveate.data.text.preferences import read_preferences
from foveate.errors import UserError
from foveate.tasks import TASKS, find_task
from foveate.tasks.recipe import TableExamples


@dataclass
class Reader:
    """What reads a table, and the cells that its examples were made of."""

    read: Callable[[list[Path]], Any]
    columns: tuple[Column, ...]
    cells: Callable[[Any], Sequence[str]]


def _name(path: Any) -> str:
    return Path(path).name


READERS = {
    "captions": Reader(captioned_images, (table.IMAGE, table.CAPTION), lambda x: (_name(x.file), *x.captions)),
    "images": Reader(labelled_images, (table.IMAGE, table.LABEL), lambda x: (_name(x.file), x.label)),
    "lines of text": Reader(word_images, (table.IMAGE, table.TRANSCRIPT), lambda x: (_name(x.file), x.label)),
    "sounds": Reader(labelled_sounds, (table.SOUND, table.TRANSCRIPT), lambda x: (_name(x.path), x.label)),
    "image questions": Reader(
        image_questions, (table.IMAGE, table.QUESTION, table.ANSWER), lambda x: (_name(x.file), x.question, x.answer)
    ),
    "text questions": Reader(
        text_questions, (table.CONTEXT, table.QUESTION, table.ANSWER), lambda x: (x.text, x.question, x.answer)
    ),
    "labelled texts": Reader(LabelledText.from_paths, (table.LABEL, TEXT), lambda x: (x.label, x.text)),
    "labelled pairs": Reader(
        read_labelled_pairs, (table.LABEL, table.FIRST, table.SECOND), lambda x: (x.label, x.first, x.second)
    ),
    "parallel texts": Reader(ParallelText.from_paths, (table.SOURCE, table.TARGET), tuple),
    "preferences": Reader(read_preferences, (table.BETTER, table.WORSE), lambda x: (x.better, x.worse)),
}


def test_every_reader_of_rows_is_walked() -> None:
    """A module that reads a table is one of those below."""
    data = Path(table.__file__).parent.parent
    modules = {path.relative_to(data).as_posix(): path.read_text() for path in data.rglob("*.py")}
    assert {name for name, text in modules.items() if re.search(r"\bDataTable\(", text)} == {
        *("images/captions.py", "images/caption_layouts.py", "images/labelled.py", "images/questions.py"),
        *("sounds/labelled.py", "text/facts.py", "text/labelled.py", "text/preferences.py", "text/parallel_corpus.py"),
        "text/alike_pairs.py",
        "text/documents.py",  # prose, whose tables have one column: tests/data/test_documents.py
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(2):
        PIL.Image.new("RGB", (8, 8), (number * 90, 0, 0)).save(tmp_path / f"{number}.png")
        write_wave(tmp_path / f"{number}.wav", np.sin(np.arange(800) * (number + 1) / 9).astype(np.float32), 8000)
    return tmp_path


def rows_of(reader: Reader) -> list[list[str]]:
    """Two rows for the columns of a reader; texts hold a comma, a quote and a letter that is no ASCII."""
    made = []
    for number in range(2):
        values = {"path": f"{number}.wav" if reader.columns[0] is table.SOUND else f"{number}.png"}
        made.append([values.get(column.name, f'{column.name} "{number}", é') for column in reader.columns])
    return made


def _tabs(path: Path, titles: list[str] | None, rows: list[list[str]]) -> None:
    path.write_text("".join("\t".join(row) + "\n" for row in [*([titles] if titles else []), *rows]), encoding="utf-8")


def _csv(path: Path, titles: list[str] | None, rows: list[list[str]], delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([*([titles] if titles else []), *rows])


def _write(path: Path, kind: str, titles: list[str], rows: list[list[str]]) -> None:
    turned = [[*row[::-1], "7"] for row in rows]
    names = [*titles[::-1], "number"]
    if kind == "tabs":
        _tabs(path, None, rows)
    elif kind == "tabs with a header":
        _tabs(path, names, turned)
    elif kind == "csv":
        _csv(path, None, rows)
    elif kind == "csv with a header":
        _csv(path, names, turned)
    elif kind == "csv with semicolons":
        _csv(path, names, turned, ";")
    elif kind == "csv of Excel":
        _csv(path, names, turned, ";")
        path.write_text("sep=;\n" + path.read_text(encoding="utf-8"), encoding="utf-16")
    elif kind in ("json", "json with one list"):
        found = [dict(zip(names, row, strict=True)) for row in turned]
        path.write_text(json.dumps(found if kind == "json" else {"version": "1.1", "data": found}, indent=1))
    elif kind == "parquet":
        pyarrow.parquet.write_table(
            pyarrow.table({name: [row[place] for row in turned] for place, name in enumerate(names)}), path
        )
    else:
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in turned]
        path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")


ENDINGS = {
    "tabs": ".tsv",
    "tabs with a header": ".txt",
    "csv": ".csv",
    "csv with a header": ".csv",
    "csv with semicolons": ".CSV",
    "csv of Excel": ".csv",
    "json lines": ".jsonl",
    "json": ".json",
    "json with one list": ".json",
    "parquet": ".parquet",
}


def titles_of(reader: Reader, number: int) -> Iterator[str]:
    """The names of the columns, or the n-th title of each that no column before has."""
    used: set[str] = set()
    for column in reader.columns:
        free = [title for title in (column.name, *column.titles) if title not in used]
        used.add(free[min(number, len(free) - 1)])
        yield free[min(number, len(free) - 1)]


@pytest.mark.parametrize("kind", ENDINGS)
@pytest.mark.parametrize("name", READERS)
def test_every_reader_reads_every_format(name: str, kind: str, folder: Path) -> None:
    reader = READERS[name]
    rows = rows_of(reader)
    for number in range(2):
        path = folder / f"table{number}{ENDINGS[kind]}"
        _write(path, kind, list(titles_of(reader, number)), rows)
        found = [list(reader.cells(example)) for example in reader.read([path])]
        assert found == rows


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ENDINGS)
def test_a_compressed_table(name: str, kind: str, folder: Path) -> None:
    if kind == "csv of Excel":
        return  # Excel compresses nothing
    reader = READERS[name]
    rows = rows_of(reader)
    plain = folder / f"a{ENDINGS[kind]}"
    _write(plain, kind, list(titles_of(reader, 0)), rows)
    packed = plain.with_name(f"{plain.name}.gz")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert [list(reader.cells(example)) for example in reader.read([packed])] == rows


@pytest.mark.parametrize("kind", ["csv with a header", "tabs with a header", "json lines", "json", "parquet"])
@pytest.mark.parametrize("name", READERS)
def test_columns_of_any_name(name: str, kind: str, folder: Path) -> None:
    """`--columns text=review` reads that column alone, also beside one with a name that is known."""
    reader = READERS[name]
    rows = rows_of(reader)
    titles = [f"My {column.name.title()}" for column in reader.columns]
    path = folder / f"a{ENDINGS[kind]}"
    _write(path, kind, [*titles, "label", "text"], [[*row, "wrong", "wrong"] for row in rows])
    pairs = [f"{column.key}={title}" for column, title in zip(reader.columns, titles, strict=True)]
    with naming_columns(pairs):
        found = reader.read([path])
    assert [list(reader.cells(example)) for example in found] == rows
    with naming_columns([",".join(pairs)]):
        assert [list(reader.cells(example)) for example in reader.read([path])] == rows
    with naming_columns([*pairs[1:], f"{reader.columns[0].key}=Absent"]), pytest.raises(UserError) as error:
        list(reader.read([path]))
    assert ": no column Absent; it has " in str(error.value) or ": no Absent; it has " in str(error.value)
    with naming_columns(["nothing=x"]), pytest.raises(UserError, match="--columns: there is no column 'nothing' here"):
        list(reader.read([path]))


@pytest.mark.parametrize("pairs", [["text"], ["=a"], ["text="], ["text=a", "text=b"], ["text=a,text=b"]])
def test_pairs_that_name_no_column(pairs: list[str]) -> None:
    with pytest.raises(UserError, match=r"^--columns "), naming_columns(pairs):
        pass


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("ending", NOT_READ)
def test_files_that_are_no_tables(name: str, ending: str, folder: Path) -> None:
    """They are not opened: the error names what is read."""
    (folder / f"a.{ending}").write_bytes(b"\x80\x04")
    with pytest.raises(UserError) as error:
        list(READERS[name].read([folder / f"a.{ending}"]))
    what, advice = NOT_READ[ending]
    assert str(error.value) == (
        f"{folder / f'a.{ending}'} is {what}: {advice}; tables are .tsv, .csv, .json, .jsonl or .parquet files"
    )


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"a": [{"text": "x"}], "b": []}', "holds the lists a, b: a table is one list of objects"),
        ("3", ": a table in JSON is a list of objects, not 3"),
        ('["x"]', ", row 1: a row must be a JSON object, not 'x'"),
        ('[{"text": "x"}, {"text": []}]', ", row 2: the text is [], but must be a text or a number"),
        ("[", " is damaged: "),
    ],
)
def test_json_that_is_no_table(content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(UserError) as error:
        rows(tmp_path / "a.json")
    assert told in str(error.value)


def test_json_lines_in_a_file_of_json(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"text": "x"}\n{"text": "y"}\n')
    (tmp_path / "b.json").write_text('{"one": {"text": "x"}, "two": {"text": "y"}}\n')
    (tmp_path / "c.json").write_text('{"text": "z"}\n')
    assert [row[1] for row in rows(tmp_path / "c.json")] == ["z"]
    assert [row[1] for name in "ab" for row in rows(tmp_path / f"{name}.json")] == ["x", "y", "x", "y"]


@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_json_in_one_long_line(ending: str, tmp_path: Path) -> None:
    """As other tools write it: longer than a line of text may be."""
    rows = [{"text": f"{number} {'word ' * 1000}", "label": "ab"[number % 2]} for number in range(1000)]
    content = json.dumps(rows).encode()
    assert len(content) > MOST_BYTES_OF_LINE
    path = tmp_path / f"long.{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert len(LabelledText.from_paths([path])) == 1000


@pytest.mark.parametrize(
    ("content", "told"), [(b'["\xff"]', "is not UTF-8: byte 2"), ("\ufeff[".encode("utf-16-le")[:3], "is not UTF-16")]
)
def test_json_in_no_encoding(content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(UserError, match=told):
        list(LabelledText.from_paths([tmp_path / "a.json"]))


@pytest.mark.parametrize("content", [b"PAR1", b"", b"PAR1" + bytes(100) + b"PAR1"])
def test_damaged_parquet(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(UserError, match=r"a.parquet is damaged: "):
        rows(tmp_path / "a.parquet")


def test_parquet_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match=r"^Parquet files need the package pyarrow: pip install 'foveate\[hub\]'$"):
        rows(tmp_path / "a.parquet")


def test_every_task_that_reads_a_table_takes_columns() -> None:
    """The tasks of the readers above and those of prose, and no others."""
    reading = {name for name in TASKS if "<TAB>" in find_task(name).layout and name not in ("tag", "walk")}
    reading |= {"language", "cloze", "autoencode", "rlhf"}
    assert {name for name in TASKS if isinstance(find_task(name).examples, TableExamples)} == reading


def test_pairs_without_an_agreed_label(tmp_path: Path) -> None:
    """SNLI has a line for those whose labels did not agree; elsewhere it is a label like others."""
    path, rows = tmp_path / "pairs.tsv", ("entailment\ta\tb", "-\tc\td", "neutral\te\tf")
    path.write_text("\n".join(rows))
    found = read_labelled_pairs([path])
    assert [one.first for one in found] == ["a", "e"]
    assert "1 without an agreed label left out" in found.report
    path.write_text("+\ta\tb\n-\tc\td\n")
    assert len(read_labelled_pairs([path])) == 2


@pytest.mark.parametrize("name", READERS)
def test_rows_of_other_columns_are_one_line(name: str, folder: Path) -> None:
    reader = READERS[name]
    expected = [column.name for column in reader.columns]
    for file, content, told in (
        ("a.tsv", "alone\n", f"line 1: 0 tabs, but a line must be {'<TAB>'.join(expected)}"),
        ("a.csv", "x\n", f"line 1: 1 cells, but a row must be {','.join(expected)}, or the first row must name"),
        ("a.jsonl", '{"x": 1}\n', f"line 1: no {expected[0]}; it has x: name it by --columns {expected[0]}=TITLE"),
        ("b.jsonl", "[1]\n", "line 1: a line must be a JSON object, not [1]"),
        ("c.jsonl", "{\n", "line 1 is damaged: "),
    ):
        (folder / file).write_text(content)
        with pytest.raises(UserError) as error:
            list(reader.read([folder / file]))
        assert str(error.value).startswith(f"{folder / file}, {told}")


def rows(path: Path, *columns: Column, **options: bool) -> list[Any]:
    return [row and (row.line, *row.cells) for row in DataTable(path, columns or (TEXT,), **options)]


def test_quoted_cells_hold_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text,label\n"two\nlines",a\n\nb,c\n')
    assert rows(tmp_path / "a.csv", table.LABEL, TEXT) == [(2, "a", "two\nlines"), None, (5, "c", "b")]


def test_what_is_no_csv(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text,label\na,b\n"open,b\n')
    with pytest.raises(UserError, match=r"a.csv, line 3: this is not CSV: "):
        rows(tmp_path / "a.csv", table.LABEL, TEXT)


def test_empty_cells(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\t\n\t\n\tb\t\n")
    assert rows(tmp_path / "a.tsv", table.SOURCE, table.TARGET, empty_cells=True) == [(1, "a", ""), None, (3, "", "b")]
    with pytest.raises(UserError, match=r"a.tsv, line 1: the target is empty"):
        rows(tmp_path / "a.tsv", table.SOURCE, table.TARGET)


def test_rows_below_a_header_have_its_width(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,a\n2\n")
    with pytest.raises(UserError, match=r"a.csv, line 3: 1 cells, but the header names 2"):
        rows(tmp_path / "a.csv")


@pytest.mark.parametrize("value", ["3", "0.5"])
def test_numbers_of_json_are_texts(value: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"sentence": {value}}}\n')
    assert rows(tmp_path / "a.jsonl") == [(1, value)]


@pytest.mark.parametrize(
    ("value", "told"), [("null", "the text is empty"), ("[1]", "the sentence is [1], but must be a text or a number")]
)
def test_values_that_are_no_cells(value: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"sentence": {value}}}\n')
    with pytest.raises(UserError) as error:
        rows(tmp_path / "a.jsonl")
    assert str(error.value) == f"{tmp_path / 'a.jsonl'}, line 1: {told}"


UNKNOWN = ("emotion", "utterance", "remark")
"""What no reader calls a column."""


def many_rows(reader: Reader) -> list[list[str]]:
    """Six rows of a reader, whose labels repeat and whose texts are sentences."""
    first, second = rows_of(reader)
    labels = [column in (table.LABEL, table.ANSWER) for column in reader.columns]
    found = []
    for number in range(6):
        row = (first, second)[number % 2]
        texts = [f"{cell} of number {number}" for cell in row]
        keep = [label or column.name == "path" for label, column in zip(labels, reader.columns, strict=True)]
        found.append([cell if kept else text for cell, text, kept in zip(row, texts, keep, strict=True)])
    return found


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_a_first_line_that_may_be_a_header_is_refused(name: str, kind: str, folder: Path) -> None:
    """Where it names none of the columns, or only some of them: both readings are named."""
    reader = READERS[name]
    names = [column.name for column in reader.columns]
    between, write = ("<TAB>", _tabs) if kind == "tsv" else (",", _csv)
    partly = [names[0], *UNKNOWN[1 : len(names)]]
    for titles, lacking in ((list(UNKNOWN[: len(names)]), names), (partly, names[1:])):
        write(folder / f"a.{kind}", titles, many_rows(reader))
        with pytest.raises(UserError) as error:
            list(reader.read([folder / f"a.{kind}"]))
        row = ", ".join(f"{column} '{title}'" for column, title in zip(names, titles, strict=True))
        named = " ".join(f"{name.replace(' ', '_')}=TITLE" for name in lacking)
        assert str(error.value) == (
            f"{folder / f'a.{kind}'}, line 1: this may be a header without {' and '.join(lacking)}, or a row ({row}): "
            f"name them by --columns {named}, or put a line {between.join(names)} above it"
        )


@pytest.mark.parametrize("name", READERS)
def test_the_advice_about_a_header_works(name: str, folder: Path) -> None:
    """Text rows that look like a header are read below one."""
    reader = READERS[name]
    rows = many_rows(reader)
    odd = [cell if column.name == "path" else UNKNOWN[0] for column, cell in zip(reader.columns, rows[0], strict=True)]
    _tabs(folder / "a.tsv", [column.name for column in reader.columns], [odd, rows[1]])
    assert list(reader.cells(next(iter(reader.read([folder / "a.tsv"]))))) == odd


@pytest.mark.parametrize(
    "lines",
    [
        ["cat\tchat", "dog\tchien", "red\trouge", "house\tmaison"],  # a dictionary: all rows are names
        ["Go.\tVa !", "Come here now.\tViens ici.", "Who is it?\tQui est-ce ?", "I am late.\tJe suis en retard."],
        ["cat\tchat", "the dog sleeps\tle chien dort"],  # too few rows to tell
        ["3\t4", "5\t6", "7\t8", "9\t10"],
    ],
)
def test_rows_that_are_no_header(lines: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("\n".join(lines), encoding="utf-8")
    found = rows(path, table.SOURCE, table.TARGET)
    assert [f"{source}\t{target}" for _, source, target in found] == lines


def test_a_first_label_that_repeats_is_no_header(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("spam\tHello\nham\ta long text\nspam\tone more text\nham\tthe last text\n", encoding="utf-8")
    assert len(rows(path, table.LABEL, TEXT)) == 4


def test_a_further_column_of_a_header(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("client_id,text\nada,hello\n")
    (tmp_path / "a.jsonl").write_text('{"text": "hello", "speaker_id": 3}\n{"text": "hello"}\n')
    found = [
        [row and row.origin for row in DataTable(tmp_path / name, (TEXT,), further=table.SPEAKER)]
        for name in ("a.csv", "a.jsonl")
    ]
    assert found == [["ada"], ["3", ""]]
