"""`torchrun --nproc-per-node 2 -m foveate train`: killed, interrupted and resumed, it ends as one process does."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import words
from ended_processes import still_running
from safetensors.torch import load_file
from small import FLAGS

from foveate.cli import main


def torchrun(processes: int) -> list[str]:
    """What comes before the arguments of a command of foveate's."""
    of_torch = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return [sys.executable, "-m", *of_torch, "-m", "foveate"]


QUIET = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in words.pairs(600, 1)), encoding="utf-8")
    return path


def command(data: Path, folder: Path, steps: int) -> list[str]:
    every = ["--save-every", "5", "--validate-every", "100000", "--precision", "float32", "--epsilon", "0.001"]
    return ["train", "translate", "--data", str(data), "--out", str(folder), *FLAGS, *every, "--steps", str(steps)]


def reached(folder: Path) -> int:
    """The step of the last checkpoint."""
    paths = (folder / "checkpoints").glob("step-*")
    return max((int(path.stem.removeprefix("step-")) for path in paths), default=0)


def process_of(rank: int, parent: int) -> int:
    """The process that torchrun started for a rank."""
    for folder in Path("/proc").iterdir():
        try:
            is_child = f"PPid:\t{parent}\n" in (folder / "status").read_text()
            if is_child and f"RANK={rank}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                return int(folder.name)
        except OSError:  # no process, or one that has ended meanwhile
            continue
    raise LookupError(f"torchrun has no process of rank {rank}")


def stopped(arguments: list[str], folder: Path, number: signal.Signals, rank: int | None) -> tuple[list[str], float]:
    """What foveate said after a signal to a rank, or to torchrun, once it saved again; and the seconds it took."""
    before = reached(folder)
    with subprocess.Popen([*torchrun(2), *arguments], stderr=subprocess.PIPE, text=True, env=QUIET) as process:
        while reached(folder) == before:
            assert process.poll() is None
            time.sleep(0.01)
        began = time.monotonic()
        os.kill(process.pid if rank is None else process_of(rank, process.pid), number)
        _, err = process.communicate(timeout=120)
    assert process.returncode != 0
    return [line for line in err.splitlines() if line.startswith("foveate: ")], time.monotonic() - began


def lost(rank: int) -> list[str]:
    """What is said of a process that is killed."""
    return [
        f"foveate: rank {rank} of 2 processes ended without a message (killed, or out of memory?); "
        "run the same command to continue from the last checkpoint"
    ]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds the processes of torchrun by /proc")
def test_killed_interrupted_and_resumed(data: Path, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    """By two replicas, of which one is lost; by two shards, without the process that writes; in the end by three."""
    folder, whole = tmp_path / "two", tmp_path / "one"
    by_replicas, by_shards = (
        [*command(data, folder, 1_000_000), "--parallel", plan] for plan in ("replicate", "shard")
    )
    for arguments, rank in ((by_replicas, 1), (by_shards, 0)):
        said, seconds = stopped(arguments, folder, signal.SIGKILL, rank)
        assert said == lost(rank)
        assert seconds < 60, "the loss of a process is known at once, not after a timeout"

    said, _ = stopped(by_replicas, folder, signal.SIGINT, rank=None)
    step = reached(folder)
    assert said == [f"foveate: stopped after step {step:,}; saved in {folder}, run the same command to continue"]

    capfd.readouterr()
    last = [*command(data, folder, step + 7), "--parallel", "shard"]
    subprocess.run([*torchrun(3), *last], check=True, env=QUIET)
    out, err = capfd.readouterr()
    assert out.startswith(f'saved in {folder}; try: foveate run {folder} "..."')
    assert out.count("\n") == 1, "one process tells it"
    assert err.count("resuming from step") == 1
    main(command(data, whole, step + 7))
    one, two = (load_file(place / "model.safetensors") for place in (whole, folder))
    assert one.keys() == two.keys()
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-4, atol=1e-4)


def rows(folder: Path) -> list[dict[str, object]]:
    """The rows of `metrics.jsonl` without times."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name not in TIMES} for line in lines]


TIMES = ("seconds", "tokens_per_second")


@pytest.mark.slow
def test_a_terminated_launcher_ends_without_a_traceback(data: Path, tmp_path: Path) -> None:
    """The rows of its metrics are those of an unbroken training."""
    broken, whole, steps = tmp_path / "broken", tmp_path / "whole", 60
    program = [sys.executable, "-m", "foveate"]
    arguments = [*command(data, broken, steps), "--processes", "2"]
    with subprocess.Popen([*program, *arguments], stderr=subprocess.PIPE, text=True, env=QUIET) as process:
        while reached(broken) < 5:
            assert process.poll() is None
            time.sleep(0.01)
        process.terminate()
        _, err = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in err
    assert err.count("foveate: stopped after step") == 1
    assert reached(broken) < steps
    for folder in (broken, whole):
        subprocess.run([*program, *command(data, folder, steps), "--processes", "2"], check=True, env=QUIET)
    assert rows(broken) == rows(whole)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds the processes of torchrun by /proc")
@pytest.mark.parametrize("met", [False, True])
def test_processes_end_with_their_launcher(met: bool, data: Path, tmp_path: Path) -> None:
    """Before they have met, one of them is stopped, so that the other one waits for it."""
    arguments = [*torchrun(2), *command(data, tmp_path / "run", 1_000_000)]
    with subprocess.Popen(arguments, stderr=subprocess.DEVNULL, env=QUIET) as process:
        workers: list[int] = []
        while len(workers) < 2 or (met and not reached(tmp_path / "run")):
            assert process.poll() is None
            time.sleep(0.05)
            with contextlib.suppress(LookupError):
                workers = [process_of(rank, process.pid) for rank in range(2)]
        if not met:
            os.kill(workers[1], signal.SIGSTOP)
            time.sleep(20)
        process.kill()
        process.wait(20)
        if not met:
            os.kill(workers[1], signal.SIGKILL)
        assert not still_running(workers, 60)


@pytest.mark.parametrize(("local_rank", "said"), [("0", ["foveate: steps is 0, but must be at least 1"]), ("1", [])])
def test_a_wrong_flag_is_told_once(
    local_rank: str, said: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    variables = {"RANK": local_rank, "LOCAL_RANK": local_rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    for name, value in {**variables, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as caught:
        main(["train", "translate", "--steps", "0"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.splitlines() == said
