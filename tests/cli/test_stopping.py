"""Programs that are stopped: by Ctrl-C, by a kill that nobody can catch, by a reader that has had enough."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small import FLAGS

from foveate.cli import main

PROGRAM = [sys.executable, "-m", "foveate"]


def command(data: Path, folder: Path, steps: int) -> list[str]:
    every = ["--save-every", "5", "--validate-every", "100000"]
    return ["train", "translate", "--data", str(data), "--out", str(folder), *FLAGS, *every, "--steps", str(steps)]


def checkpoints(folder: Path) -> list[int]:
    return sorted(int(path.stem.removeprefix("step-")) for path in (folder / "checkpoints").glob("step-*"))


def stopped(number: signal.Signals, data: Path, folder: Path) -> tuple[int, str]:
    """The exit status and stderr of a training that gets a signal once it has a checkpoint."""
    with subprocess.Popen([*PROGRAM, *command(data, folder, 1_000_000)], stderr=subprocess.PIPE, text=True) as process:
        while not checkpoints(folder):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
    return process.returncode, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_training_that_was_stopped_goes_on_to_the_same_end(
    number: signal.Signals, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    status, err = stopped(number, data, tmp_path / "run")
    if number != signal.SIGKILL:
        assert status == 128 + number
        reached = checkpoints(tmp_path / "run")[-1]
        assert err.splitlines()[-1] == (
            f"foveate: stopped after step {reached:,}; saved in {tmp_path / 'run'}, run the same command to continue"
        )
        assert "Traceback" not in err
    else:
        assert status == -signal.SIGKILL
    steps = checkpoints(tmp_path / "run")[-1] + 7
    for folder in ("run", "whole"):
        main(command(data, tmp_path / folder, steps))
    assert f"resuming from step {steps - 7:,}" in capsys.readouterr().err
    one, other = (load_file(tmp_path / folder / "model.safetensors") for folder in ("run", "whole"))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_control_c_outside_training(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    def press(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("foveate.cli.data.main", press)
    with pytest.raises(SystemExit) as caught:
        main(["data"])
    assert caught.value.code == 130
    assert capsys.readouterr().err == "foveate: stopped\n"


@pytest.mark.parametrize("seconds", [0.0, 0.35, 0.65])
def test_control_c_while_libraries_are_imported(seconds: float, tmp_path: Path) -> None:
    """An exception there crashed torch. The time counts from where foveate itself is at work, not Python's start."""
    telling = [sys.executable, "-X", "importtime", "-m", "foveate", "run", str(tmp_path)]
    with subprocess.Popen(telling, stderr=subprocess.PIPE, text=True) as process:
        while not (line := process.stderr.readline()).rstrip().endswith("foveate.errors"):
            assert line, "the command ended before it had begun"
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    told = [line for line in err.splitlines() if not line.startswith("import time:")]
    assert (process.returncode, told) == (130, ["foveate: stopped"]) or process.returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_under_the_output() -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run([*PROGRAM, "data"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (2, "foveate: No space left on device\n")


def test_a_reader_that_has_had_enough() -> None:
    """As in `foveate data | head -1`: no complaint."""
    with subprocess.Popen([*PROGRAM, "data"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_under_standard_error_ends_no_training(data: Path, tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run([*PROGRAM, *command(data, tmp_path / "run", 2)], stderr=full, stdout=subprocess.PIPE)
    assert ended.returncode == 0
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_names_with_line_ends_leave_one_line(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        main(["run", str(tmp_path / "new\nline"), "a"])
    assert len(capsys.readouterr().err.splitlines()) == 1
