"""Seconds until the processes of a training have ended whose launcher was killed, and whether it goes on exactly.

    python benchmarks/killed_launcher.py
    python benchmarks/killed_launcher.py --kills 12 --seed 3

Two processes train a tiny translator. Their launcher is killed (SIGKILL) at random moments: while they start, in
training, or as soon as a checkpoint is being written. `foveate train --processes 2` and torchrun take turns. All kills
are of one training, which each start resumes. In the end it takes some steps more, and its weights are compared with
those of a training that was never killed.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import blake2b
from itertools import cycle, islice
from pathlib import Path

from filelock import FileLock

from foveate.files import UNFINISHED
from foveate.training.folder_lock import LOCK

LAUNCHERS = {
    "foveate": [sys.executable, "-m", "foveate"],
    "torchrun": [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "foveate"],
}

MOMENTS = ("starting", "training", "saving")

LONGEST = 120.0
"""Seconds after which processes count as never ended, and are killed."""

SIZES = "--vocabulary 60 --architecture.width 16 --batch 200 --model rnn-attentive --precision float32"

SCHEDULE = "--schedule constant --warmup 5 --patience 100000 --save-every 5 --validate-every 100000 --average 1"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as name:
        data, killed, whole = (Path(name) / part for part in ("pairs.tsv", "killed", "whole"))
        words = [f"w{number}" for number in range(50)]
        rows = (rng.choices(words, k=rng.randint(2, 8)) for _ in range(600))
        data.write_text("".join(f"{' '.join(row)}\t{' '.join(row[::-1])}\n" for row in rows), encoding="utf-8")
        turns = cycle((launcher, moment) for moment in MOMENTS for launcher in LAUNCHERS)
        for launcher, moment in islice(turns, asked.kills):
            seconds, alone = kill(launcher, moment, data, killed, rng)
            locked = "locked" if is_locked(killed) else "free"
            print(f"{launcher:8} {moment:8} {seconds:6.1f} s, {alone}, step {reached(killed):,}, {locked}", flush=True)
        steps = reached(killed) + 7
        for folder in (killed, whole):
            command = [*LAUNCHERS["foveate"], *arguments(data, folder, steps), "--processes", "2"]
            subprocess.run(command, check=True, env=environment(), stderr=subprocess.DEVNULL)
        one, other = (blake2b((folder / "model.safetensors").read_bytes()).digest() for folder in (killed, whole))
        print(f"after {steps:,} steps: {'the same weights' if one == other else 'OTHER weights'}")


def arguments(data: Path, folder: Path, steps: int) -> list[str]:
    told = ["--data", str(data), "--out", str(folder), "--steps", str(steps)]
    return ["train", "translate", *told, *SIZES.split(), *SCHEDULE.split()]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}


def kill(launcher: str, moment: str, data: Path, folder: Path, rng: random.Random) -> tuple[float, str]:
    """Seconds from the death of the launcher to that of its processes, and what they were doing."""
    before = reached(folder)
    command = [*LAUNCHERS[launcher], *arguments(data, folder, 1_000_000)]
    command += ["--processes", "2"] if launcher == "foveate" else []
    with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until(lambda: len(workers(process.pid)) == 2, process)
        if moment != "starting":
            until(lambda: reached(folder) > before, process)
        time.sleep(12 * rng.random() ** 3 if moment == "starting" else rng.uniform(0, 3))
        if moment == "saving":
            until(lambda: any((folder / "checkpoints").glob(f"{UNFINISHED}*")), process, every=0.0005)
        left, working = workers(process.pid), is_locked(folder)
        process.kill()
        began = time.monotonic()
        process.wait()
    while any(map(runs, left)) and time.monotonic() < began + LONGEST:
        time.sleep(0.02)
    seconds = time.monotonic() - began
    for worker in filter(runs, left):
        os.kill(worker, signal.SIGKILL)
        print(f"process {worker} did not end")
    return seconds, "had met" if working else "had not met"


def until(what: Callable[[], bool], process: subprocess.Popen[bytes], every: float = 0.02) -> None:
    while not what():
        if process.poll() is not None:
            raise SystemExit(f"the training ended by itself, with status {process.returncode}")
        time.sleep(every)


def reached(folder: Path) -> int:
    """The step of the last checkpoint."""
    steps = [path.stem.removeprefix("step-") for path in (folder / "checkpoints").glob("step-*.safetensors")]
    return max(map(int, steps), default=0)


def is_locked(folder: Path) -> bool:
    lock = FileLock(folder / LOCK)
    if not (folder / LOCK).exists():
        return False
    try:
        lock.acquire(blocking=False)
    except TimeoutError:
        return True
    lock.release()
    return False


def workers(parent: int) -> list[int]:
    """The processes with a rank that another one started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"PPid:\t{parent}\n" in (folder / "status").read_text():
                found += [int(folder.name)] if b"\0RANK=" in (folder / "environ").read_bytes() else []
        except OSError:  # it has ended meanwhile
            continue
    return found


def runs(process: int) -> bool:
    """Whether a process is there, and more than its exit status."""
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


if __name__ == "__main__":
    main()
