"""Training that is broken off, in every way, ends as if it had not been: bit for bit."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import tiny_training
import torch
from rich.console import Console
from tiny_training import TinyBatches, run
from torch import nn

from foveate.contracts import Batch
from foveate.files import UNFINISHED
from foveate.tensor_files import read_metadata
from foveate.training import Interrupted, Result
from foveate.training.checkpoints import Checkpoints
from foveate.training.interruption import Interruption
from foveate.training.progress import Progress

TIMES = ("seconds", "tokens_per_second")


class Sudden(Exception):
    """Stands for a process that vanishes."""


class BreakOff(TinyBatches):
    """Calls `act` before it gives the batch of one step."""

    def __init__(self, step: int, act: Any) -> None:
        super().__init__()
        self.step, self.act = step, act

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        for index, batch in enumerate(super().epoch(number, skip), start=number * self.length + skip + 1):
            if index == self.step:
                self.act()
            yield batch


def vanish() -> None:
    raise Sudden


def press(number: signal.Signals = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def rows(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "metrics.jsonl").read_text(encoding="utf-8")
    return [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in text.splitlines()]


def same(one: tuple[nn.Module, Result], other: tuple[nn.Module, Result]) -> bool:
    pairs = zip(one[0].parameters(), other[0].parameters(), strict=True)
    return one[1] == other[1] and all(torch.equal(first, second) for first, second in pairs)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[nn.Module, Result, Path]:
    """An uninterrupted training."""
    folder = tmp_path_factory.mktemp("whole")
    return *run(folder), folder


def checkpoint(folder: Path, step: int) -> bytes:
    """A checkpoint's tensors, random numbers and all, without the metadata (which holds the time)."""
    data = (folder / "checkpoints" / f"step-{step:08d}.safetensors").read_bytes()
    return data[8 + int.from_bytes(data[:8], "little") :]


@pytest.mark.parametrize("step", [3, 7, 8, 28, 29, 33, 60])
def test_killed_between_two_steps(tmp_path: Path, whole: Any, step: int):
    with pytest.raises(Sudden):
        run(tmp_path, batches=BreakOff(step, vanish))
    assert same(run(tmp_path), whole[:2])
    assert checkpoint(tmp_path, 60) == checkpoint(whole[2], 60)
    assert rows(tmp_path) == rows(whole[2])


def test_killed_twice_while_writing(tmp_path: Path, whole: Any):
    with pytest.raises(Sudden):
        run(tmp_path, batches=BreakOff(24, vanish))
    unfinished = tmp_path / "checkpoints" / f"{UNFINISHED}abc"
    unfinished.mkdir()
    (unfinished / "step-00000028.safetensors").write_bytes(b"half of a")
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 24, "epo')
    with pytest.raises(Sudden):
        run(tmp_path, batches=BreakOff(36, vanish))
    assert not unfinished.exists()
    assert same(run(tmp_path), whole[:2])
    assert rows(tmp_path) == rows(whole[2])


def test_a_truncated_newest_checkpoint_costs_only_time(tmp_path: Path, whole: Any):
    with pytest.raises(Sudden):
        run(tmp_path, batches=BreakOff(45, vanish))
    newest = tmp_path / "checkpoints" / "step-00000042.safetensors"
    newest.write_bytes(newest.read_bytes()[:-3])
    assert same(run(tmp_path), whole[:2])


def test_damaged_checkpoints_of_before_are_left_out_of_the_average(tmp_path: Path, whole: Any):
    shutil.copytree(whole[2], tmp_path / "copy")
    older = sorted((tmp_path / "copy" / "checkpoints").glob("*.safetensors"))[:-1]
    for path in older:
        path.write_bytes(path.read_bytes()[:-3])
    told = StringIO()
    result = run(tmp_path / "copy", console=Console(file=told, width=500))[1]
    assert result.kept == "step 60"
    assert told.getvalue().count("skipped a checkpoint: ") == len(older) > 1
    older[-1].unlink()
    assert run(tmp_path / "copy")[1].kept == "step 60"


def test_checkpoints_that_a_kill_kept_from_being_removed(tmp_path: Path, whole: Any, monkeypatch: pytest.MonkeyPatch):
    """Also those that the last checkpoint of the training would have removed."""

    def prune(self: Checkpoints, progress: Progress) -> None:
        if progress.step == 60:
            raise Sudden

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "_prune", prune)
        with pytest.raises(Sudden):
            run(tmp_path)
    names = {path.name for path in (whole[2] / "checkpoints").iterdir()}
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} > names
    assert same(run(tmp_path), whole[:2])
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == names


def test_accumulated_batches_resume_in_the_middle_of_an_epoch(tmp_path: Path):
    expected = run(tmp_path / "whole", accumulate=3, epochs=9, steps=None, save_every=5)
    assert expected[1].step == 33
    with pytest.raises(Sudden):
        run(tmp_path / "broken", accumulate=3, epochs=9, steps=None, save_every=5, batches=BreakOff(59, vanish))
    assert same(run(tmp_path / "broken", accumulate=3, epochs=9, steps=None, save_every=5), expected)


def test_the_scale_of_float16_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.training.loss_scale.DOUBLED_AFTER", 9)
    settings: dict[str, Any] = {"precision": "float16", "steps": 24}
    expected = run(tmp_path / "whole", **settings)
    with pytest.raises(Sudden):
        run(tmp_path / "broken", batches=BreakOff(12, vanish), **settings)
    assert same(run(tmp_path / "broken", **settings), expected)
    assert checkpoint(tmp_path / "broken", 24) == checkpoint(tmp_path / "whole", 24)
    scales = [
        json.loads(read_metadata(tmp_path / name / "checkpoints" / "step-00000024.safetensors")["progress"])
        for name in ("whole", "broken")
    ]
    assert scales[0]["loss_scale"] == scales[1]["loss_scale"]
    assert scales[0]["loss_scale"]["steps"] < 9


def test_a_finished_training_is_not_trained_again(tmp_path: Path, whole: Any):
    shutil.copytree(whole[2], tmp_path / "copy")
    assert same(run(tmp_path / "copy", batches=BreakOff(1, vanish)), whole[:2])
    assert rows(tmp_path / "copy") == rows(whole[2])


def test_more_steps_go_on_from_where_it_ended(tmp_path: Path):
    expected = run(tmp_path / "whole", steps=42)
    run(tmp_path / "parts", steps=28)
    assert same(run(tmp_path / "parts", steps=42), expected)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_control_c_saves_and_says_how_to_go_on(tmp_path: Path, whole: Any, capfd: Any, number: signal.Signals):
    handler = signal.getsignal(number)
    with pytest.raises(Interrupted) as caught:
        run(tmp_path, batches=BreakOff(31, lambda: press(number)))
    assert str(caught.value) == f"stopped after step 31; saved in {tmp_path}, run the same command to continue"
    assert "press again to stop at once" in capfd.readouterr().err
    assert signal.getsignal(number) is handler
    assert (tmp_path / "checkpoints" / "step-00000031.safetensors").exists()
    assert same(run(tmp_path), whole[:2])
    assert checkpoint(tmp_path, 60) == checkpoint(whole[2], 60)
    assert rows(tmp_path) == rows(whole[2])


def test_an_ignored_signal_stays_ignored():
    """As a shell has it for a job in the background."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            press(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        assert not interruption.asked
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_second_control_c_stops_at_once(tmp_path: Path):
    def press_twice() -> None:
        press()
        press()

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, batches=BreakOff(31, press_twice))
    assert not (tmp_path / "checkpoints" / "step-00000031.safetensors").exists()


def test_control_c_in_the_last_comparison_stops_at_once(tmp_path: Path, whole: Any, monkeypatch: pytest.MonkeyPatch):
    """All is saved by then."""
    with monkeypatch.context() as patch:
        patch.setattr(tiny_training, "VALIDATION", replace(tiny_training.VALIDATION, thorough=lambda _: press() or {}))
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path)
    assert same(run(tmp_path), whole[:2])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_process_stopped_at_a_random_moment(tmp_path: Path, number: signal.Signals, capfd: Any):
    program = [sys.executable, tiny_training.__file__, str(tmp_path), "1000000"]
    process = subprocess.Popen(program, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"begins\n"
    checkpoints = tmp_path / "checkpoints"
    while not list(checkpoints.glob("step-*")):
        assert process.poll() is None
        time.sleep(0.001)
    delay = random.SystemRandom().uniform(0.0, 0.3)
    time.sleep(delay)
    process.send_signal(number)
    status = process.wait(timeout=60)
    process.stdout.close()
    if number == signal.SIGKILL:
        assert status == -signal.SIGKILL
    else:
        assert "Interrupted: stopped after step" in capfd.readouterr().err
    reached = max(int(path.stem.removeprefix("step-")) for path in checkpoints.glob("step-*"))
    resumed, whole = (run(folder, steps=reached + 10) for folder in (tmp_path, tmp_path / "whole"))
    assert same(resumed, whole), f"after {delay} seconds"
    assert checkpoint(tmp_path, reached + 10) == checkpoint(tmp_path / "whole", reached + 10)
    if number == signal.SIGKILL:
        assert rows(tmp_path) == rows(tmp_path / "whole")
