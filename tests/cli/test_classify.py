"""A task without options of its own on the command line: train, run, eval; flags and help are those of its folder."""

import csv
import gzip
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import torch
import verdicts

import foveate
from foveate.cli import main
from foveate.forms.answers import NoOptions

Fails = Callable[..., str]

FLAGS = [
    *("--architecture.width", "16", "--architecture.embedding", "12", "--architecture.dropout", "0"),
    *("--batch", "256", "--max-length", "64", "--steps", "60", "--learning-rate", "0.02", "--warmup", "5"),
    *("--schedule", "constant", "--average", "1", "--threads", "1"),
]

TEXTS = ["the film was bad", "", "great dogs"]


def tsv(path: Path, count: int, seed: int) -> Path:
    path.write_text("".join(f"{label}\t{text}\n" for label, text in verdicts.examples(count, seed)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    place, out = tmp_path_factory.mktemp("classify"), StringIO()
    with redirect_stdout(out), redirect_stderr(StringIO()):
        main(["train", "classify", "--data", str(tsv(place / "a.tsv", 300, 1)), "--out", str(place / "run"), *FLAGS])
    look = f'or to see where it looks: foveate look {place / "run"} "..."'
    assert out.getvalue() == f'saved in {place / "run"}; try: foveate run {place / "run"} "...", {look}\n'
    return place / "run"


def told(capsys: pytest.CaptureFixture, *arguments: object) -> tuple[str, str]:
    capsys.readouterr()
    main([str(argument) for argument in arguments])
    return tuple(capsys.readouterr())


def test_run(folder: Path, capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    """One line for each text: label and probability; the picture is that of the first that is not empty."""
    expected = [decision.line for decision in foveate.load(folder).answer(TEXTS, NoOptions())]
    assert [line.split("\t")[0] for line in expected] == ["blame", "", "praise"]
    out, err = told(capsys, "run", folder, *TEXTS, "--picture", tmp_path / "bad.png")
    assert out.splitlines() == expected
    assert err.splitlines() == [f"drew {tmp_path / 'bad.png'}", "1 empty line stays empty"]
    assert (tmp_path / "bad.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "texts.gz").write_bytes(gzip.compress("\n".join(TEXTS).encode()))
    assert told(capsys, "run", "--device", "cpu", folder, "--file", tmp_path / "texts.gz")[0].splitlines() == expected


def test_a_table_in_and_out(folder: Path, capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    """The texts of a CSV by its header, with line ends; all probabilities; a file given as a text is noticed."""
    (tmp_path / "new.csv").write_text('id,text\n1,"the film was bad, really"\n2,"great\ndogs"\n')
    _, err = told(capsys, "run", folder, "--file", tmp_path / "new.csv", "--out", tmp_path / "answers.csv")
    assert err == f"wrote {tmp_path / 'answers.csv'}: 2 answers\n"
    with (tmp_path / "answers.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["input"] for row in rows] == ["the film was bad, really", "great\ndogs"]
    assert [row["label"] for row in rows] == ["blame", "praise"]
    for row in rows:
        assert sum(float(row[f"probabilities.{label}"]) for label in ("blame", "praise")) == pytest.approx(1)
    _, err = told(capsys, "run", folder, tmp_path / "new.csv")
    assert err == f"'{tmp_path / 'new.csv'}' is read as a text; --file {tmp_path / 'new.csv'} reads the texts in it\n"


def test_eval_without_data_is_of_what_was_held_out(folder: Path, capsys: pytest.CaptureFixture) -> None:
    out, err = told(capsys, "eval", folder)
    assert err.startswith("a.tsv, held out: ")
    assert "on the examples that validated: " in out
    assert "on the examples that validated: " not in told(capsys, "eval", folder, "--data", folder.parent / "a.tsv")[0]


def test_eval(folder: Path, capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    data, output = tsv(tmp_path / "test.tsv", 40, 2), tmp_path / "answers.txt"
    out, err = told(capsys, "eval", folder, "--data", data, "--json", "--output", output)
    figures = json.loads(out)
    assert figures["texts"] == 40
    assert figures["ways"]["rnn-attentive-classifier"]["accuracy"] > 95
    assert len(output.read_text().splitlines()) == 40
    link = tmp_path / "link.txt"
    link.symlink_to(output)
    output.write_text("old")
    told(capsys, "eval", folder, "--data", data, "--output", link)
    assert link.is_symlink()
    assert len(output.read_text().splitlines()) == 40
    assert err.startswith("test.tsv: 40 texts (")
    table, _ = told(capsys, "eval", folder, "--data", data)
    for word in ("answers by", "accuracy", "macro F1", "rnn-attentive-classifier", "always ", "40 texts", "2 labels"):
        assert word in table


def test_a_label_is_shown_as_it_is(capsys: pytest.CaptureFixture) -> None:
    from foveate.cli.eval import _show
    from foveate.tasks.evaluation import Evaluation

    _show(Evaluation([], {}, ["labels by", "[red]"], [["[/b]", "[pos] :cat:"]]))
    out = capsys.readouterr().out
    assert all(word in out for word in ("[red]", "[/b]", "[pos] :cat:"))


@pytest.mark.parametrize("verb", ["run", "eval"])
def test_help_of_a_folder_is_that_of_its_task(folder: Path, capsys: pytest.CaptureFixture, verb: str) -> None:
    def help_text(*arguments: object) -> str:
        with pytest.raises(SystemExit):
            told(capsys, verb, *arguments, "--help")
        return capsys.readouterr().out

    assert "--device" in help_text(folder)
    assert "--decoding.width" not in help_text(folder)
    assert "--decoding.width" in help_text()


def test_mistakes(folder: Path, fails: Fails, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text("no label here\n")
    for arguments, message in [
        (("run", folder, "bad", "--decoding.width", 3), "unknown option --decoding.width; see foveate run --help"),
        (("run", folder, "", "--picture", "a.png"), "no picture to draw into a.png: there was nothing to answer"),
        (("eval", folder, "--data", "pairs.tsv"), "pairs.tsv, line 1: 0 tabs, but a line must be label<TAB>text"),
        (("eval", folder, "--groups", 3), "unknown option --groups; see foveate eval --help"),
        (("train", "classify"), "nothing to learn from: name a source (see `foveate data`) or give --data FILE"),
        (
            ("train", "classify", "--model", "rnn"),
            "rnn is a model for another task; the task classify takes bert-tiny,",
        ),
        (
            ("train", "classify", "emoji"),
            "emoji is text for translate, match and embed; sources for classify: ",
        ),
        (
            ("train", "classify", "--tokens", "letters"),
            "unknown --tokens 'letters'; known: ",
        ),
        (
            ("train", "translate", "movie-sentiment"),
            "movie-sentiment is text for classify; sources for translate: emo",
        ),
    ]:
        assert fails(*arguments).startswith(message)
