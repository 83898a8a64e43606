"""Data sets of a hub: files of a split, forms of text, columns, and what is refused."""

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hub_server import Stub, refused, running_hub, silent

import foveate
from foveate import cli
from foveate.data.sources.hub import HubFile
from foveate.data.sources.hub_tables import choose_files, hub_text, read_rows
from foveate.tasks import find_task
from foveate.tasks.examples.hub_data import FORMS, local_paths


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[Stub]]:
    with running_hub(monkeypatch, tmp_path / "cache") as hub:
        yield hub


JSONL = "".join(json.dumps({"text": f"an ant\t{n}\nruns", "label": n % 2}) + "\n" for n in range(30)).encode()


def test_a_data_set_trains(server: type[Stub], tmp_path: Path) -> None:
    server.repositories["datasets/org/reviews"] = {
        "reviews.py": b"raise SystemExit",
        "data/train.jsonl": JSONL,
        "data/test.jsonl": b'{"text": "an ant", "label": 1}\n',
    }
    task = foveate.recipe(
        "classify",
        data=(Path("hub:org/reviews"),),
        validation=(Path("hub:org/reviews:test"),),
        out=tmp_path / "run",
        steps=2,
        warmup=1,
        threads=1,
    )
    found = foveate.train(task)
    assert task.examples.data[0].read_text().splitlines()[:2] == ["0\tan ant 0 runs", "1\tan ant 1 runs"]
    assert task.examples.validation[0].read_text() == "1\tan ant\n"
    assert found.run("an ant").label in ("0", "1")
    assert not any("reviews.py" in path for path in server.asked)
    asked = len(server.asked)
    cli.main(["eval", "--data", "hub:org/reviews:test", "--json", str(tmp_path / "run")])
    assert len(server.asked) == asked


@pytest.mark.parametrize(
    ("form", "rows", "text"),
    [
        ("parallel", [{"translation": {"en": "a  cat", "fr": "un chat"}}], "a cat\tun chat\n"),
        ("parallel", [{"fr": "un", "en": "one"}, {"fr": None, "en": "two"}], "one\tun\n"),
        ("tagged", [{"tokens": ["a", "cat"], "pos_tags": ["DET", "NOUN"]}], "a\tDET\ncat\tNOUN\n\n"),
        ("prose", [{"text": "One.\nTwo."}, {"text": " Three. "}], "One.\nTwo.\n\nThree.\n\n"),
    ],
)
def test_forms_of_text(server: type[Stub], form: Any, rows: list[Any], text: str) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    server.repositories["datasets/org/rows"] = {"rows.jsonl": lines}
    assert hub_text("hub:org/rows", form, ("en", "fr"), silent).read_text(encoding="utf-8") == text


def test_columns_by_name(server: type[Stub]) -> None:
    server.repositories["datasets/org/table"] = {"en/train.csv": b"stars,words\n5,good\n1,bad\n"}
    text = partial(hub_text, form="labelled", languages=None, announce=silent)
    assert text("hub:org/table:en/train:stars,words").read_text() == "5\tgood\n1\tbad\n"
    assert refused(text, "hub:org/table") == (
        "hub:org/table has the columns stars, words: name those to read, hub:NAME:SPLIT:COLUMN,COLUMN"
    )
    assert "has no column star; it has stars, words" in refused(text, "hub:org/table:train:star,words")
    assert "2 columns are needed here, not 1" in refused(text, "hub:org/table:train:stars")
    assert "too many colons" in refused(text, "hub:a:b:c:d")
    assert "not a name of a split" in refused(text, "hub:a:../b")


def test_parquet_with_names_of_classes(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    features = {"label": {"names": ["bad", "good"], "_type": "ClassLabel"}, "text": {"dtype": "string"}}
    features["tags"] = {"feature": {"names": ["X", "Y"], "_type": "ClassLabel"}, "_type": "List"}
    table = pyarrow.table({"label": [1, 0], "text": ["fine", "poor"], "tags": [[0, 1], [1]]})
    told = json.dumps({"info": {"features": features}})
    parquet.write_table(table.replace_schema_metadata({"huggingface": told}), tmp_path / "a.parquet")
    assert list(read_rows(tmp_path / "a.parquet")) == [
        {"label": "good", "text": "fine", "tags": ["X", "Y"]},
        {"label": "bad", "text": "poor", "tags": ["Y"]},
    ]
    (tmp_path / "b.parquet").write_bytes(b"PAR1 broken")
    assert "b.parquet is damaged: " in refused(lambda: list(read_rows(tmp_path / "b.parquet")))


def test_parquet_without_its_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    told = refused(lambda: list(read_rows(tmp_path / "a.parquet")))
    assert told == "Parquet files need the package pyarrow: pip install 'foveate[hub]'"


@pytest.mark.parametrize("content", ["{", "[1]", "[" * 100_000, '{"text": "' + "x" * (2**20) + '"}', "\udc80"])
def test_damaged_lines(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(content.encode(errors="surrogateescape"))
    assert "a.jsonl is damaged: " in refused(lambda: list(read_rows(tmp_path / "a.jsonl")))


def listed(*names: str) -> list[HubFile]:
    return [HubFile(name, 1) for name in names]


def test_files_of_a_split() -> None:
    both = listed("data/train-0-of-2.parquet", "data/train-1-of-2.parquet", "data/test.parquet", "train.csv")
    assert choose_files("x", both, "train") == both[:2]
    assert choose_files("x", both, "test") == both[2:3]
    assert choose_files("x", listed("a.csv", "b.csv"), "train") == listed("a.csv", "b.csv")
    assert "no split dev; its splits: test, train" in refused(choose_files, "x", both, "dev")
    parts = listed("en/train.csv", "fr/train.csv")
    assert "several parts: name one, such as hub:NAME:en/train" in refused(choose_files, "x", parts, "train")
    assert choose_files("x", parts, "fr/train") == parts[1:]
    assert "scripts of data sets are never run" in refused(choose_files, "x", listed("x.py"), "train")


def test_tasks_without_text_take_no_data_set() -> None:
    told = refused(local_paths, [Path("hub:org/x")], "classify-image")
    assert told.startswith("--data hub:NAME is for classify, translate")
    assert told.endswith("not for classify-image")
    assert local_paths([Path("a.tsv")], "detect") == (Path("a.tsv"),)


CHAT = [{"role": "user", "content": "what?"}, {"role": "assistant", "content": "a lamp"}]

SQUAD = {"context": "A lamp shines.", "question": "What?", "answers": {"text": ["A lamp"], "answer_start": [0]}}

INFERRED = [
    {"premise": "a", "hypothesis": "b", "label": "entailment"},
    {"premise": "c", "hypothesis": "d", "label": "neutral"},
]

PREFERRED = {"prompt": CHAT[:1], "chosen": CHAT[1:], "rejected": [{"role": "assistant", "content": "no"}]}

ROWS: dict[str, tuple[list[dict[str, Any]], Callable[[Any], Any], list[Any]]] = {
    "pair": (
        [
            {"premise": "a", "hypothesis": "b", "label": "entailment"},
            {"premise": "c", "hypothesis": "d", "label": "neutral"},
        ],
        lambda one: (one.label, one.first, one.second),
        [("entailment", "a", "b"), ("neutral", "c", "d")],
    ),
    "ask": (
        [SQUAD, {**SQUAD, "answers": {"text": [], "answer_start": []}}],
        lambda one: (one.text, one.question, one.answer),
        [("A lamp shines.", "What?", "A lamp")],
    ),
    "dpo": (
        [PREFERRED],
        lambda one: (one.better, one.worse, one.question.turns),
        [("a lamp", "no", (("user", "what?"),))],
    ),
    "reward": (
        [{"prompt": "x", "chosen": "y", "rejected": "z"}],
        lambda one: (one.better, one.worse),
        [("x y", "x z")],
    ),
    "rlhf": ([{"prompt": CHAT[:1]}], lambda one: one.messages, [(("user", "what?"),)]),
    "language": ([{"messages": CHAT}], lambda one: one.sentences, [("a lamp",)]),
    "match": ([{"source": "a", "target": "b"}], tuple, [("a", "b")]),
    "embed": (
        [{"sentence1": "a", "sentence2": "b", "score": 4.5}, {"sentence1": "c", "sentence2": "d", "score": 1.0}],
        tuple,
        [("a", "b")],
    ),
}
"""Rows of a data set, what a task makes of an example, and of all."""


def test_every_task_that_takes_rows_is_tried() -> None:
    """Those of the other forms are tried above."""
    assert {task for task, form in FORMS.items() if form in ("rows", "alike")} <= ROWS.keys()


@pytest.mark.parametrize("task", ROWS)
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_rows_and_conversations_are_read_by_their_task(
    server: type[Stub], task: str, kind: str, tmp_path: Path
) -> None:
    rows, made, expected = ROWS[task]
    content = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    if kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
        content = (tmp_path / "rows.parquet").read_bytes()
    server.repositories["datasets/org/rows"] = {f"train.{kind}": content}
    paths = local_paths([Path("hub:org/rows")], task, ("en", "fr"))
    found = find_task(task).read(paths, find_task(task).recipe())
    assert [made(one) for one in found] == expected


def test_columns_of_rows_by_name(server: type[Stub]) -> None:
    rows = [{"one": "a", "two": "b", "sure": 1}, {"one": "c", "two": None, "sure": 0}]
    server.repositories["datasets/org/rows"] = {"train.jsonl": "".join(f"{json.dumps(row)}\n" for row in rows).encode()}
    (path,) = local_paths([Path("hub:org/rows:train:sure,one,two")], "pair")
    assert path.read_text() == '{"label": 1, "text": "a", "other text": "b"}\n'
    told = refused(local_paths, [Path("hub:org/rows:train:one,two")], "pair")
    assert told == "hub:org/rows: the columns here are label, text, other text, but 2 are named"
    told = refused(local_paths, [Path("hub:org/rows:train:one,two,three")], "pair")
    assert told == "hub:org/rows has no column three; it has one, two, sure"
