"""A training that was stopped has a model: that of its newest checkpoint."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small import FLAGS

from foveate import run_dir, tasks
from foveate.cli import main

TAGGED = "they\tPRON\nwalk\tVERB\n\nthe\tDET\nwalk\tNOUN\n\nthey\tPRON\ntalk\tVERB\n\n"


def stop(folder: Path) -> None:
    """Leave what a training leaves that was stopped after its last step."""
    for path in folder.iterdir():
        if path.is_file() and path.name != "metrics.jsonl":
            path.unlink()


@pytest.fixture(scope="module")
def stopped(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stopped") / "run"
    main(["train", "translate", "--data", str(data), "--out", str(folder), *FLAGS, "--steps", "3"])
    stop(folder)
    return folder


def test_its_newest_checkpoint_is_used_with_a_note(
    stopped: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("".join(data.read_text().splitlines(keepends=True)[:3]))
    commands = (
        ["run", str(stopped), "a word"],
        ["eval", str(stopped), "--data", str(few), "--json"],
        ["look", str(stopped), "a word", "--out", str(tmp_path / "look.html")],
    )
    for command in commands:
        capsys.readouterr()
        main(command)
        found = capsys.readouterr()
        assert f"{stopped}: its training has not ended; this is its model after step 3\n" in found.err
        assert found.out


def test_a_damaged_newest_checkpoint_is_passed_over(stopped: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(stopped, folder)
    (folder / "checkpoints" / "step-00000009.safetensors").write_bytes(b"damaged")
    for name in ("step-last", "step-²", "step-99 (copy)"):
        shutil.copy(
            folder / "checkpoints" / "step-00000003.safetensors", folder / "checkpoints" / f"{name}.safetensors"
        )
    newest = run_dir.newest_checkpoint(folder)
    assert newest is not None
    assert newest.name == "step-00000003.safetensors"


def test_finish_makes_the_model(
    stopped: Path, data: Path, tmp_path: Path, fails: Callable[..., str], capsys: pytest.CaptureFixture
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(stopped, folder)
    before = tasks.load(folder).model.state_dict()
    main(["finish", str(folder)])
    assert f"saved step-00000003 in {folder}; try: foveate run" in capsys.readouterr().out
    after = tasks.load(folder).model.state_dict()
    assert all((before[name] == after[name]).all() for name in before)
    assert run_dir.newest_checkpoint(folder) is None
    assert fails("finish", folder).startswith(f"{folder} has a model already")
    main(["train", "translate", "--data", str(data), "--out", str(folder), *FLAGS, "--steps", "4"])
    assert "resuming from step 3" in capsys.readouterr().err


def test_a_task_on_a_page_too(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "tagged.txt").write_text("".join(f"{TAGGED}the\tDET\nw{n}\tNOUN\n\n" for n in range(20)))
    flags = ["--steps", "2", "--architecture.width", "16", "--threads", "1"]
    main(["train", "tag", "--data", str(tmp_path / "tagged.txt"), "--out", str(tmp_path / "run"), *flags])
    stop(tmp_path / "run")
    capsys.readouterr()
    main(["run", str(tmp_path / "run"), "they walk"])
    found = capsys.readouterr()
    assert "after step 2" in found.err
    assert len(found.out.split()) == 2
