"""Each process writes its part of a checkpoint; any number of processes reads it, with the same bits."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import shard_writers
import torch
from shard_writers import saved
from torch.distributed import checkpoint

from foveate.errors import UserError
from foveate.tensor_files import write_tensors
from foveate.tensor_parts import parts_of, read_whole

STEP = "checkpoints/step-00000001"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where two processes began, four went on, and two ended; and one went on from four and from two."""
    place = tmp_path_factory.mktemp("shards")
    for scene, size in (("two_begin", 2), ("four_go_on", 4), ("two_end", 2)):
        program = [sys.executable, shard_writers.__file__, scene, str(place), str(size)]
        begun = [subprocess.Popen([*program, str(rank)], stderr=subprocess.PIPE, text=True) for rank in range(size)]
        told = [process.communicate(timeout=300)[1] for process in begun]
        assert [process.returncode for process in begun] == [0] * size, "\n".join(told)
    for run, begun in (("one", "both-4"), ("one-of-shard-2", "shard-2"), ("one-of-tensor-2", "tensor-2")):
        saved(place / run, begun=place / begun)
    return place


def state(run: Path) -> dict[str, torch.Tensor]:
    """The model and the optimizer in a checkpoint."""
    tensors = read_whole(run / f"{STEP}.safetensors")
    return {name: one for name, one in tensors.items() if not name.startswith("random/")}


def assert_equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


OF_TWO = (
    "shard-4",
    "tensor-4",
    "both-4",
    "shard-2-of-4",
    "tensor-2-of-4",
    "replicas",
    "shard-of-one-file",
    "one",
    "one-of-shard-2",
)


@pytest.mark.parametrize("run", OF_TWO)
def test_any_number_of_processes_has_the_same_state(folder: Path, run: str) -> None:
    assert_equal(state(folder / run), state(folder / "shard-2"))


def test_layers_in_parts_have_the_same_state_as_shards_of_them(folder: Path) -> None:
    for run in ("from-tensor-4", "one-of-tensor-2"):
        assert_equal(state(folder / run), state(folder / "tensor-2"))


def test_no_process_writes_the_whole(folder: Path) -> None:
    whole = (folder / "one" / f"{STEP}.safetensors").stat().st_size
    for run, processes in (("shard-2", 2), ("tensor-2", 2), ("shard-4", 4), ("both-4", 4)):
        parts = parts_of(folder / run / f"{STEP}.safetensors")
        assert parts is not None
        sizes = [path.stat().st_size for path in parts.paths]
        assert len(sizes) == processes
        assert max(sizes) < 0.9 * whole
    for run in ("one", "one-of-shard-2", "one-of-tensor-2", "replicas"):
        assert parts_of(folder / run / f"{STEP}.safetensors") is None


@pytest.mark.parametrize("run", ["shard-4", "tensor-4", "both-4"])
def test_the_reader_of_torch_opens_the_parts(folder: Path, run: str) -> None:
    whole = state(folder / run)
    found = {name: torch.zeros_like(one) for name, one in whole.items() if name.endswith("exp_avg")}
    parts = parts_of(folder / run / f"{STEP}.safetensors")
    assert parts is not None
    assert found
    with pytest.warns(UserWarning, match="single process"):
        checkpoint.load(found, storage_reader=checkpoint.HuggingFaceStorageReader(str(parts.folder)), no_dist=True)
    assert_equal(found, {name: whole[name] for name in found})


def test_a_checkpoint_written_again_takes_the_place_of_the_first_in_one_move(folder: Path) -> None:
    names = sorted(path.name for path in (folder / "shard-2" / "checkpoints").glob("step-*"))
    assert names == ["step-00000001-again", "step-00000001.safetensors"]
    assert_equal(state(folder / "shard-2"), state(folder / "shard-4"))


@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_a_damaged_part_is_told_and_passed_over(folder: Path, tmp_path: Path, damage: str) -> None:
    run, checkpoints = tmp_path / "run", tmp_path / "run" / "checkpoints"
    shutil.copytree(folder / "two-steps", run)
    victim = checkpoints / "step-00000002" / "part-00002-of-00002.safetensors"
    content = bytearray(victim.read_bytes())
    content[-1] ^= 1
    victim.unlink()
    if damage != "gone":
        victim.write_bytes(content if damage == "changed" else content[:-9])
    progress, told = saved(tmp_path / "on", begun=run)
    assert progress.step == 1
    assert len(told) == 1
    assert str(checkpoints / "step-00000002") in told[0]
    assert_equal(state(tmp_path / "on"), state(run))


def test_parts_without_the_file_that_names_them_are_none(folder: Path, tmp_path: Path) -> None:
    """As a process leaves them that is killed while it writes."""
    run, checkpoints = tmp_path / "run", tmp_path / "run" / "checkpoints"
    shutil.copytree(folder / "two-steps", run)
    (checkpoints / "step-00000002.safetensors").unlink()
    progress, told = saved(run, begun=run)
    assert (progress.step, told) == (1, [])
    assert [path.name for path in checkpoints.glob("step-*")] == ["step-00000001.safetensors"]
    assert_equal(state(run), state(folder / "two-steps"))


def test_parts_lie_in_the_folder_beside_the_file(folder: Path, tmp_path: Path) -> None:
    note = {"folder": "..", "files": {"part.safetensors": ""}}
    write_tensors(tmp_path / "a.safetensors", {}, {"parts": json.dumps(note)})
    with pytest.raises(UserError, match=r"a\.safetensors is damaged: its parts are in another place$"):
        read_whole(tmp_path / "a.safetensors")


def test_a_tensor_of_which_a_part_is_missing(folder: Path) -> None:
    (part, _) = sorted((folder / "shard-2" / "checkpoints" / "step-00000001-again").iterdir())[::-1]
    with pytest.raises(
        UserError, match=r"part-00002-of-00002\.safetensors is damaged: its parts do not make up 'model/"
    ):
        read_whole(part)
