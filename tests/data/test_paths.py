"""Paths in Python: a text, a Path, or several."""

from pathlib import Path

from foveate.data.text.labelled import LabelledText
from foveate.data.text.parallel_corpus import ParallelText
from foveate.data.text.tagged import tagged_text


def test_quotes_in_a_table_are_text_and_paths_may_be_texts(tmp_path: Path) -> None:
    path = str(tmp_path / "t.tsv")
    rows = [('uno " dos', "one"), ('" tres', 'three "'), ('"cuatro"', '"four')]
    Path(path).write_text("".join(f"{one}\t{other}\n" for one, other in rows), encoding="utf-8")
    assert list(ParallelText.from_tsv(path)) == rows
    assert [(example.label, example.text) for example in LabelledText.from_file(path)] == rows
    (sentence,) = tagged_text(path)
    assert list(zip(sentence.words, sentence.tags, strict=True)) == rows
