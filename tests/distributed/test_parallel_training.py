"""Two processes train as one does, whether the model is replicated or sharded."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import two_processes
from safetensors.torch import load_file
from two_processes import gradients, run

from foveate.tensor_parts import read_whole

BOTH_WAYS = pytest.mark.parametrize("parallel", ["replicate", "shard"])


def pair(scenes: str, folder: Path) -> list[subprocess.Popen]:
    """The two processes, which began."""
    program = [sys.executable, two_processes.__file__, scenes, str(folder)]
    return [subprocess.Popen([*program, str(rank)], stderr=subprocess.PIPE, text=True) for rank in (0, 1)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one process, and then two, have played all scenes."""
    place = tmp_path_factory.mktemp("parallel")
    run(place / "alone", 6)
    run(place / "half", 3)
    for parallel in ("replicate", "shard"):
        shutil.copytree(place / "half", place / parallel / "from-one")
    processes = pair("all", place)
    told = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], "\n".join(told)
    assert told == ["", ""]
    return place


@pytest.fixture(scope="module")
def told(folder: Path) -> list[dict[str, Any]]:
    """What each of the two processes said."""
    return [json.loads((folder / f"rank-{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1)]


def weights(folder: Path, step: int = 6) -> dict[str, torch.Tensor]:
    return read_whole(folder / "checkpoints" / f"step-{step:08d}.safetensors")


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def assert_close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], tolerance: float) -> None:
    """All but random states are equal, up to rounding."""
    names = {name for name in one if not name.startswith("random/")}
    assert names == {name for name in other if not name.startswith("random/")}
    for name in names:
        torch.testing.assert_close(one[name], other[name], rtol=tolerance, atol=tolerance)


@BOTH_WAYS
def test_the_gradients_are_those_of_one_process(folder: Path, parallel: str) -> None:
    assert_close(load_file(folder / parallel / "gradients.safetensors"), gradients(), 1e-6)


@BOTH_WAYS
def test_the_metrics_are_those_of_one_process(folder: Path, parallel: str) -> None:
    alone, together = rows(folder / "alone"), rows(folder / parallel / "whole")
    assert len(alone) == len(together) == 6 + 2 + 1
    for one, other in zip(alone, together, strict=True):
        assert one.keys() == other.keys()
        for name in one.keys() - {"seconds", "tokens_per_second", "validation", "final"}:
            assert other[name] == pytest.approx(one[name], rel=1e-5), name
        if "validation" in one:
            assert other["validation"] == pytest.approx(one["validation"], rel=1e-5)
    assert together[-1]["final"]["kept"] == alone[-1]["final"]["kept"]


@BOTH_WAYS
def test_the_checkpoints_are_those_of_one_process(folder: Path, parallel: str) -> None:
    for step in (4, 6):
        assert_close(weights(folder / parallel / "whole", step), weights(folder / "alone", step), 1e-5)


@BOTH_WAYS
def test_every_process_ends_with_the_weights_that_were_kept(folder: Path, told: Any, parallel: str) -> None:
    first, second = (load_file(folder / parallel / f"{rank}.safetensors") for rank in (0, 1))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert told[0][f"{parallel} result"] == told[1][f"{parallel} result"]
    model, result = run(folder / "alone", 6)
    assert told[0][f"{parallel} result"][:2] == [result.step, result.kept]
    assert_close(first, model.state_dict(), 1e-5)


@BOTH_WAYS
def test_begun_by_one_process_and_ended_by_two(folder: Path, parallel: str) -> None:
    assert_close(weights(folder / parallel / "from-one"), weights(folder / "alone"), 1e-5)


@BOTH_WAYS
def test_begun_by_two_processes_and_ended_by_one(folder: Path, parallel: str) -> None:
    shutil.copytree(folder / parallel / "to-one", folder / parallel / "ended-by-one")
    run(folder / parallel / "ended-by-one", 6)
    assert_close(weights(folder / parallel / "ended-by-one"), weights(folder / "alone"), 1e-5)


@BOTH_WAYS
def test_two_processes_resume_bit_for_bit(folder: Path, parallel: str) -> None:
    """With dropout, which is another one in each process."""
    unbroken, parts = (weights(folder / parallel / name) for name in ("unbroken", "parts"))
    assert unbroken.keys() == parts.keys()
    assert all(torch.equal(unbroken[name], parts[name]) for name in unbroken)
    assert not torch.equal(unbroken["random/cpu"], unbroken["random/1/cpu"])


@BOTH_WAYS
def test_all_refuse_a_loss_that_is_not_finite_on_one(told: Any, parallel: str) -> None:
    """The batch of step 3 that has five rows, the second of which is poisoned: it belongs to rank 1."""
    for each in told:
        message = "step 3 stopped: the loss is nan on batch 4 of epoch 0; the weights were not changed; try a learning"
        assert each[f"{parallel} poisoned"].startswith(message)


def test_what_one_process_finds_wrong_all_are_told(told: Any) -> None:
    assert [each["metric"] for each in told] == ["unknown metric 'lost'; did you mean loss?"] * 2


def test_processes_that_read_different_data(told: Any) -> None:
    assert any(each["data"].startswith("step 1 stopped: the processes read different data") for each in told)


def test_parameters_that_cannot_be_replicated_or_sharded(told: Any) -> None:
    for each in told:
        assert each["unused"].startswith("the loss does not depend on 'idle.weight', but replicas must exchange all")
        assert each["unused shards"] == "nothing was wrong"
        assert each["single"] == "'offset' is a single number, which cannot be sharded: use parallel 'replicate'"


def test_a_process_that_needs_nobody_notices_a_missing_one_too(tmp_path: Path) -> None:
    first, second = pair("missing", tmp_path)
    _, error = first.communicate(timeout=100)
    second.communicate(timeout=100)
    assert (first.returncode, second.returncode) == (1, -9)
    assert error.splitlines() == [
        "",
        "foveate: rank 1 of 2 processes ended without a message (killed, or out of memory?); run the same command "
        "to continue from the last checkpoint",
    ]


def test_trouble_of_one_process_ends_all(tmp_path: Path) -> None:
    """In a program that made the process group itself, and lets errors out."""
    processes = pair("failing", tmp_path)
    last = [process.communicate(timeout=100)[1].splitlines()[-1] for process in processes]
    assert [process.returncode for process in processes] == [1, 1]
    ends = ["UserError: another process of this training ended", "UserError: trouble of its own"]
    assert all(line.endswith(end) for line, end in zip(last, ends, strict=True)), last
