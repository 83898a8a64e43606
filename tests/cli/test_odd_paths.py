"""Names that are not UTF-8, and links that lead to themselves: they work, or one line tells of them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from small import Trained

Fails = Callable[..., str]

BYTES = os.fsdecode(b"b\xffd")

COMMANDS = {
    "run": ["run", "RUN", "red cat"],
    "run, a picture": ["run", "RUN", "red cat", "--picture", "FILE"],
    "eval": ["eval", "RUN", "--data", "DATA"],
    "eval, its answers": ["eval", "RUN", "--data", "DATA", "--output", "FILE"],
    "look": ["look", "RUN", "red cat", "--out", "FILE"],
    "report": ["report", "RUN", "--out", "FILE"],
    "explore": ["explore", "RUN"],
    "finish": ["finish", "RUN"],
    "export": ["export", "RUN", "--out", "FOLDER"],
    "train": ["train", "translate", "--data", "DATA", "--out", "RUN"],
    "train, from": ["train", "translate", "--data", "DATA", "--out", "FOLDER", "--from", "RUN"],
}
"""What takes a run folder."""


def filled(command: list[str], **places: object) -> list[str]:
    return [str(places.get(word, word)) for word in command]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_run_folder_that_is_not_utf8(fails: Fails, trained: Trained, tmp_path: Path, command: list[str]) -> None:
    folder = shutil.copytree(trained.folder, tmp_path / BYTES)
    arguments = filled(command, RUN=folder, DATA=trained.data, FILE=tmp_path / "x.png", FOLDER=tmp_path / "x")
    assert fails(*arguments) == f"the path {str(folder)!r} is not valid UTF-8: rename it, or choose another one"
    assert sorted(path.name for path in tmp_path.iterdir()) == [BYTES]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("name", ["loop", "loop/in"])
def test_a_run_folder_that_is_a_loop(
    fails: Fails, trained: Trained, tmp_path: Path, command: list[str], name: str
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    arguments = filled(command, RUN=tmp_path / name, DATA=trained.data, FILE=tmp_path / "x.png", FOLDER=tmp_path / "x")
    assert str(tmp_path / "loop") in fails(*arguments)


@pytest.mark.parametrize("name", ["look", "report", "eval, its answers", "run, a picture", "export"])
def test_a_loop_to_write_to(fails: Fails, trained: Trained, tmp_path: Path, name: str) -> None:
    (tmp_path / "loop.png").symlink_to("loop.png")
    loop = tmp_path / "loop.png"
    arguments = filled(COMMANDS[name], RUN=trained.folder, DATA=trained.data, FILE=loop, FOLDER=loop)
    assert "loop.png" in fails(*arguments)
    assert loop.is_symlink()


def test_data_that_is_not_utf8(fails: Fails, trained: Trained, tmp_path: Path) -> None:
    """Before it is read: the trained model could not note it."""
    data = Path(shutil.copy(trained.data, tmp_path / BYTES))
    told = f"the path {str(data)!r} is not valid UTF-8: rename it, or choose another one"
    for flags in (["--data", data], ["--data", trained.data, "--validation", data]):
        assert fails("train", "translate", *flags, "--out", tmp_path / "run") == told


def test_names_are_printed_as_they_are(trained: Trained, tmp_path: Path) -> None:
    """What is not UTF-8 can be measured on, and written to."""
    folder = tmp_path / BYTES
    folder.mkdir()
    data = Path(shutil.copy(trained.data, folder / "pairs.tsv"))
    for command in (
        ["look", "RUN", "red cat", "--out", folder / "look.html"],
        ["look", "RUN", "red cat", "--out", tmp_path / "look.html", "--picture", folder / "look.png"],
        ["eval", "RUN", "--data", data, "--output", folder / "answers.txt"],
        ["report", "RUN", "--out", folder / "report.html"],
        ["run", "RUN", "--file", data, "--picture", folder / "run.png"],
    ):
        arguments = filled([*map(str, command)], RUN=trained.folder)
        found = subprocess.run([sys.executable, "-m", "foveate", *arguments], capture_output=True, timeout=120)
        assert (found.returncode, b"Traceback" in found.stderr) == (0, False), found.stderr
    written = {"answers.txt", "look.html", "look.png", "pairs.tsv", "report.html", "run.png"}
    assert {path.name for path in folder.iterdir()} == written
