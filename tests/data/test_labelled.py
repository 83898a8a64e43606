"""Labelled text: what is read, counted and refused."""

import gzip
from pathlib import Path

import pytest

from foveate.data.text.labelled import Labelled, LabelledCounts, LabelledText
from foveate.data.text.parallel_corpus import ParallelText
from foveate.data.text.tagged import tagged_text
from foveate.errors import UserError


def write(path: Path, content: str) -> Path:
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return path


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_file(tmp_path: Path, ending: str) -> None:
    text = LabelledText.from_paths([write(tmp_path / f"a.tsv{ending}", "good\tA cafe\u0301. \n\n bad \t No.\n")])
    assert list(text) == list(text) == [Labelled(1, "good", "A café."), Labelled(3, "bad", "No.")]
    assert (list(text.labels()), list(text.texts())) == (["good", "bad"], ["A café.", "No."])
    assert text.check() == LabelledCounts(kept=2, empty=1, labels={"bad": 1, "good": 1})
    assert text.report == f"a.tsv{ending}: 2 texts (1 bad, 1 good); 1 empty lines left out"


def test_a_part_keeps_its_lines() -> None:
    text = LabelledText.from_pairs([("a", "one"), ("b", "two"), ("a", "three")], "numbers")
    part = text.part("odd numbers", lambda line: line % 2 == 1)
    assert list(part) == [Labelled(1, "a", "one"), Labelled(3, "a", "three")]
    assert part.report == "odd numbers: 2 texts (2 a)"


def test_the_report_of_many_labels() -> None:
    text = LabelledText.from_pairs([(letter, "x") for letter in "gfedcba"], "letters")
    assert text.report == "letters: 7 texts (1 a, 1 b, 1 c, 1 d, 1 e and 2 labels more)"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("good\tA\nNo label here\n", "{path}, line 2: 0 tabs, but a line must be label<TAB>text"),
        ("good\tA\tB\n", "{path}, line 1: 2 tabs, but a line must be label<TAB>text"),
        ("good\t\n", "{path}, line 1: the text is empty"),
        ("\n\n", "a.tsv: there is no labelled text in it"),
        ("", "{path} is empty"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = write(tmp_path / "a.tsv", content)
    with pytest.raises(UserError) as caught:
        LabelledText.from_file(path).check()
    assert str(caught.value).startswith(message.replace("{path}", str(path)))


def test_one_file_and_no_more(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"labelled text is one file of label<TAB>text lines; 2 files were given"):
        LabelledText.from_paths([tmp_path / "a", tmp_path / "b"])


def test_swapped_columns_are_questioned(tmp_path: Path) -> None:
    """3,485 labels for two texts; but two texts of a few labels, and labels that are as rare as their texts, may be."""
    path = tmp_path / "swapped.tsv"
    path.write_text("".join(f"a text {number}\t{('good', 'bad')[number % 2]}\n" for number in range(3485)))
    expected = r"swapped.tsv has 3,485 different labels and only 2 different texts: are its columns swapped\? a line"
    for read in (LabelledText.check, lambda text: text.held_out(10), lambda text: text.report):
        with pytest.raises(UserError, match=expected):
            read(LabelledText.from_file(path))
    few = LabelledText.from_pairs([(f"label {number}", "the text") for number in range(20)])
    assert len(few.check().labels) == 20
    names = LabelledText.from_pairs([(f"label {number}", f"the text {number}") for number in range(50)])
    assert len(names.check().labels) == 50


def test_quotation_marks_in_a_table_are_text(tmp_path: Path) -> None:
    """A line that begins with one is no field that goes on for lines, in any table of texts."""
    rows = [('one " two', 'uno " dos'), ('" three', "tres"), ('four "', '"cuatro'), ('"five" six', 'cinco "seis"')]
    path = tmp_path / "t.tsv"
    path.write_text("".join(f"{first}\t{second}\n" for first, second in rows), encoding="utf-8")
    (sentence,) = tagged_text(path)
    assert list(zip(sentence.words, sentence.tags, strict=True)) == rows
    assert [(one.label, one.text) for one in LabelledText.from_file(path)] == rows
    assert list(ParallelText.from_tsv(path)) == rows
