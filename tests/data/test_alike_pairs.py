"""Pairs of data sets of likeness and of inference, as `embed` and `pair` read them."""

import json
from pathlib import Path
from typing import Any

import pytest

from foveate.data.text.alike_pairs import read_alike
from foveate.data.text.labelled_pairs import read_labelled_pairs
from foveate.errors import UserError


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def pairs(first: str, second: str, label: str, values: list[Any]) -> list[dict[str, Any]]:
    return [{first: f"a {n}", second: f"b {n}", label: value} for n, value in enumerate(values)]


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        (pairs("premise", "hypothesis", "label", ["entailment", "neutral", "contradiction", "entailment"]), [0, 3]),
        (pairs("sentence1", "sentence2", "gold_label", ["-", "entailment"]), [1]),
        (pairs("sentence1", "sentence2", "score", [5.0, 3.9, 4.0, 0]), [0, 2]),
        (pairs("sentence1", "sentence2", "similarity_score", [0.79, 0.8, 1.0]), [1, 2]),
        (pairs("source", "target", "label", ["news", "talk"]), [0, 1]),
        (pairs("anchor", "positive", "place", ["x", "y"]), [0, 1]),
    ],
)
def test_pairs_that_mean_the_same(rows: list[dict[str, Any]], kept: list[int], tmp_path: Path) -> None:
    text = read_alike([table(tmp_path / "pairs.jsonl", rows)])
    assert [*text] == [(f"a {n}", f"b {n}") for n in kept]
    left_out = f"; left out: {len(rows) - len(kept)} that do not mean the same" if len(kept) < len(rows) else ""
    assert text.report == f"pairs.jsonl: {len(kept)} pairs{left_out}"
    assert [*text] == [(f"a {n}", f"b {n}") for n in kept]


@pytest.mark.parametrize(
    ("name", "values", "labels"),
    [
        ("score", [5.0, 3.9, 0.2], ["5", "4", "0"]),
        ("similarity_score", [0.5, 0.91, 0.0], ["2", "5", "0"]),
        ("label", [2, 0, 1], ["2", "0", "1"]),
        ("gold_label", ["entailment", "-", "neutral"], ["entailment", "neutral"]),
        ("label", ["entailment", "-1"], ["entailment"]),
    ],
)
def test_labels_and_scores_of_pairs(name: str, values: list[Any], labels: list[str], tmp_path: Path) -> None:
    found = read_labelled_pairs([table(tmp_path / "pairs.jsonl", pairs("sentence1", "sentence2", name, values))])
    assert [one.label for one in found] == labels


def test_a_header_of_lines_names_the_columns_too(tmp_path: Path) -> None:
    lines = ["sentence1\tsentence2\tscore", "a\tb\t4.5", "c\td\t2.0"]
    (tmp_path / "sts.tsv").write_text("\n".join(lines))
    assert [*read_alike([tmp_path / "sts.tsv"])] == [("a", "b")]
    assert [one.label for one in read_labelled_pairs([tmp_path / "sts.tsv"])] == ["4", "2"]


def test_numbers_of_classes_do_not_say_which_pairs_mean_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"premise": f"text {n}", "hypothesis": "other", "label": n % 3} for n in range(6)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.raises(UserError, match="the labels are 0, 1, 2, which do not say which pairs mean the same"):
        read_alike(path)
