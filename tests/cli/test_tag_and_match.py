"""The tasks `tag` and `match` from the command line: files in, one line out for each line in, tables of measures."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from foveate.cli import main

TAGGED = "the\tDET\nold\tADJ\nboat\tNOUN\n\nthey\tPRON\nsail\tVERB\nthe\tDET\nboat\tNOUN\n\n" * 30

SMALL = ["--steps", "2", "--average", "1", "--threads", "1", "--architecture.width", "16"]


def output(capsys: pytest.CaptureFixture, *arguments: object) -> str:
    capsys.readouterr()
    main([str(argument) for argument in arguments])
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tagged") / "boats.tsv"
    path.write_text(TAGGED)
    return path


@pytest.fixture(scope="module")
def tagger(tagged: Path) -> Path:
    folder = tagged.parent / "run"
    main(["train", "tag", "--data", str(tagged), "--validation", str(tagged), "--out", str(folder), *SMALL])
    return folder


@pytest.fixture(scope="module")
def matcher(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("match") / "run"
    main(["train", "match", "--data", str(data), "--out", str(folder), "--vocabulary", "120", *SMALL])
    return folder


def test_words_come_back_with_their_tags(tagger: Path, tagged: Path, capsys) -> None:
    lines = output(capsys, "run", tagger, "The old man the boat .", "").splitlines()
    assert [[pair.rpartition("/")[0] for pair in line.split()] for line in lines] == [
        ["The", "old", "man", "the", "boat", "."],
        [],
    ]
    tags = {pair.rpartition("/")[2] for pair in lines[0].split()}
    assert tags <= {"DET", "ADJ", "NOUN", "PRON", "VERB"}


def test_a_tagger_beside_its_baselines(tagger: Path, tagged: Path, capsys) -> None:
    table = output(capsys, "eval", tagger, "--data", tagged)
    assert "each word's most frequent tag" in table
    assert "210 words, 5 tags" in table
    figures = json.loads(output(capsys, "eval", tagger, "--data", tagged, "--json"))
    assert figures["ways"]["each word's most frequent tag"]["accuracy"] == 100
    assert "210 words, 5 tags; 0 unknown words" in table


def test_a_look_at_the_tagger_that_is_trained_by_default(tagger: Path, tmp_path: Path, capsys) -> None:
    assert "4 heads at 1 site" in output(capsys, "look", tagger, "they sail", "--out", tmp_path / "look.html")
    output(capsys, "run", tagger, "they sail", "--picture", tmp_path / "where.png")
    assert (tmp_path / "where.png").stat().st_size > 1000


def test_a_file_of_pairs_gets_a_probability_for_each_line(matcher: Path, tmp_path: Path, capsys) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("red cat\trouge chat\n\nsmall sun\tlune\n")
    lines = output(capsys, "run", matcher, "--file", path).splitlines()
    assert [line.split("\t")[1:] for line in lines] == [["red cat", "rouge chat"], [], ["small sun", "lune"]]
    assert all(0 <= float(line.split("\t")[0]) <= 1 for line in lines if line)


def test_a_pair_with_an_empty_side_does_not_belong_together(matcher: Path, tmp_path: Path, capsys) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("red cat\t\n\tlune\n")
    lines = output(capsys, "run", matcher, "--file", path).splitlines()
    assert [(float(line.split("\t")[0]), *line.split("\t")[1:]) for line in lines] == [
        (0, "red cat", ""),
        (0, "", "lune"),
    ]


def test_a_matcher_beside_its_rules(matcher: Path, data: Path, capsys) -> None:
    table = output(capsys, "eval", matcher, "--data", data)
    assert all(name in table for name in ("siamese-bag", "length ratio", "shared letter triples", "ROC AUC"))


def test_mistakes_end_with_one_line(
    tagger: Path, matcher: Path, tmp_path: Path, fails: Callable[..., str], data: Path
) -> None:
    assert fails("run", matcher, "red cat") == "'red cat' has 0 tabs, where one tab must separate two texts"
    (tmp_path / "bad.tsv").write_text("the DET\n")
    assert "line 1: 0 tabs" in fails("train", "tag", "--data", tmp_path / "bad.tsv", "--out", tmp_path / "run")
    told = fails("train", "tag", "--data", data, data, "--out", tmp_path / "run")
    assert told == "tagged text is one file of word<TAB>tag lines; 2 files were given"


def test_a_tagger_that_does_not_attend_has_no_picture(tagged: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    recurrent = tmp_path / "run"
    main(["train", "tag", "--model", "birnn-tagger", "--data", str(tagged), "--out", str(recurrent), *SMALL])
    assert fails("run", recurrent, "they sail", "--picture", tmp_path / "a.png").startswith("no picture to draw")
