"""Language models and auto-encoders on the command line: train on files, use, measure."""

import json
from pathlib import Path

import pytest
import tiny_prose

from foveate.cli import main

FLAGS = [
    *("--architecture.width", "24", "--architecture.embedding", "24", "--vocabulary", "90", "--batch", "256"),
    *("--validation-examples", "5", "--steps", "4", "--average", "1", "--threads", "1"),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return tiny_prose.write_files(tmp_path_factory.mktemp("files"))


def told(capsys: pytest.CaptureFixture, *arguments: object) -> list[str]:
    """The lines of a command's output."""
    capsys.readouterr()
    main([str(argument) for argument in arguments])
    return capsys.readouterr().out.splitlines()


def trained(task: str, model: str, files: list[Path], folder: Path) -> Path:
    main(["train", task, "--data", *map(str, files), "--model", model, "--out", str(folder), *FLAGS])
    return folder


@pytest.fixture(scope="module")
def author(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained("language", "rnn-conditioned", files, tmp_path_factory.mktemp("runs") / "author")


@pytest.fixture(scope="module")
def coder(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained("autoencode", "hierarchical-autoencoder", files, tmp_path_factory.mktemp("runs") / "coder")


def test_writing(author: Path, capsys: pytest.CaptureFixture) -> None:
    """An empty beginning is one, too; the same seed writes the same."""
    command = ("run", author, "The whale", "", "--condition", "sea", "--decoding.length-extra", 7)
    first = told(capsys, *command)
    assert len(first) == 2
    assert first[0].startswith("The whale")
    assert first[1]
    assert told(capsys, *command) == first != told(capsys, *command, "--seed", 5)


def test_later_lines_are_drawn_anew(
    author: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """However many are answered at once."""
    monkeypatch.setattr("foveate.cli.run.CHUNK", 2)
    (tmp_path / "empty.txt").write_text("\n" * 4)
    command = ("run", author, "--file", tmp_path / "empty.txt", "--decoding.length-extra", 7)
    lines = told(capsys, *command)
    assert lines[:2] != lines[2:]
    assert told(capsys, *command) == lines


def test_perplexity(author: Path, files: list[Path], capsys: pytest.CaptureFixture) -> None:
    lines = told(capsys, "eval", author, "--data", *files)
    assert "perplexity per word" in lines[1]
    assert lines[-1] == "passages of at most 100 words, each with its end"
    figures = json.loads(told(capsys, "eval", author, "--data", files[0], "--json")[0])
    names = {"unigram", "bigram", "trigram", "rnn-conditioned", "told no condition", "told a wrong one"}
    assert set(figures["ways"]) == names


def test_an_auto_encoder(coder: Path, files: list[Path], capsys: pytest.CaptureFixture) -> None:
    text = "The ship rests now. A sailor comes home."
    assert len(told(capsys, "run", coder, text, "", text)) == 3
    (vector,) = told(capsys, "run", coder, text, "--show", "vector")
    assert len(vector.split("\t")) == 24
    (nearest,) = told(capsys, "run", coder, text, "--show", "neighbours", "--neighbours", 2)
    assert nearest.count("\t") == 1
    command = ("run", coder, text, "--decoding.method", "sample")
    drawn = told(capsys, *command)
    assert told(capsys, *command) == drawn != told(capsys, *command, "--seed", 5)
    lines = told(capsys, "eval", coder, "--data", *files, "--examples", 20)
    assert "tokens in place" in lines[1]


def test_mistakes(author: Path, coder: Path, fails) -> None:
    assert fails("run", author, "The whale", "--condition", "see").startswith(
        "unknown condition 'see'; did you mean sea?"
    )
    assert fails("eval", coder, "--examples", "0") == "examples is 0, but must be at least 1"
    assert fails("run", coder, "The whale", "--show", "vectors").startswith("unknown --show 'vectors'")
