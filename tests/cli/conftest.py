"""A translator trained by the command line, for all tests of it; and what a failing command must look like."""

# ruff: noqa: E402
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import torch

sys.path[:0] = [str(Path(__file__).parent), *(str(Path(__file__).parent.parent / part) for part in ("tasks", "parity"))]

import words
from small import FLAGS, Trained

from foveate.cli import main


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 600 pairs."""
    path = tmp_path_factory.mktemp("data") / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in words.pairs(600, 1)), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A run folder, and what `foveate train` printed."""
    torch.manual_seed(0)
    folder, out, err = tmp_path_factory.mktemp("run") / "words", StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        main(["train", "translate", "--data", str(data), "--out", str(folder), *FLAGS, "--steps", "200"])
    return Trained(folder, data, out.getvalue(), err.getvalue())


@pytest.fixture
def fails(capsys: pytest.CaptureFixture) -> Callable[..., str]:
    """Runs a command that must end with status 2 and one line, the last on stderr; that line's message."""

    def run(*arguments: object) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        assert caught.value.code == 2
        told = capsys.readouterr().err
        lines = told.splitlines()
        assert "Traceback" not in told
        assert [line.startswith("foveate: ") for line in lines] == [False] * (len(lines) - 1) + [True]
        return lines[-1].removeprefix("foveate: ")

    return run


@pytest.fixture
def failures(capsys: pytest.CaptureFixture) -> Callable[..., list[str]]:
    """Runs `foveate run` with inputs that cannot be read: it must end with status 2; the lines on stderr say why."""

    def run(*arguments: object) -> list[str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        assert caught.value.code == 2
        told = capsys.readouterr().err
        assert "Traceback" not in told
        return told.splitlines()

    return run
