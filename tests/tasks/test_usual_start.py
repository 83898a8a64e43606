"""Weights that a training of few texts begins from: which, where they are missing, and how to have none."""

from pathlib import Path

import pytest
import verdicts

from foveate.cli import main
from foveate.errors import UserError
from foveate.tasks import find_task
from foveate.tasks.start.usual import usual_start


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("foveate.tasks.start.usual.FEW", 100)
    path = tmp_path / "data.tsv"
    path.write_text("".join(f"{label}\t{text}\n" for label, text in verdicts.examples(60, 1)), encoding="utf-8")
    return path


def test_few_texts_begin_from_weights_that_are_there(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr("foveate.tasks.start.usual.locate", lambda name, say: Path(name))
    task = find_task("classify")
    assert usual_start(task, task.recipe(data=data, out=data.parent / "run")) == "minilm"
    assert "are few: begins from minilm (English); --from none" in capsys.readouterr().err
    monkeypatch.setattr("foveate.tasks.start.usual.FEW", 20)
    assert usual_start(task, task.recipe(data=data, out=data.parent / "run")) is None


def test_other_languages_begin_from_nothing(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.tasks.start.usual.locate", lambda name, say: Path(name))
    data.write_text(data.read_text(encoding="utf-8").replace("e", "é"), encoding="utf-8")
    task = find_task("classify")
    assert usual_start(task, task.recipe(data=data, out=data.parent / "run")) is None


def test_without_a_network_the_training_begins_from_nothing(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def missing(name: str, say: object) -> Path:
        raise UserError("is the network up?")

    monkeypatch.setattr("foveate.tasks.start.usual.locate", missing)
    out = data.parent / "run"
    main(["train", "classify", "--data", str(data), "--steps", "2", "--out", str(out)])
    assert "trained from nothing: minilm" in capsys.readouterr().err
    main(["train", "classify", "--data", str(data), "--steps", "3", "--out", str(out)])
    assert "trained from nothing" not in capsys.readouterr().err


def test_none_begins_from_nothing(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr("foveate.tasks.start.usual.locate", lambda name, say: pytest.fail("asked for weights"))
    main(
        ["train", "classify", "--data", str(data), "--steps", "2", "--from", "none", "--out", str(data.parent / "run")]
    )
    assert "minilm" not in capsys.readouterr().err.replace("--from minilm", "")
