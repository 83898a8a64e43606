"""Trainings of every task are killed at random moments and resumed: whether they end with the same bits.

    python benchmarks/kills.py
    python benchmarks/kills.py --kills 100 --seed 3 --tasks translate detect

Each training runs in a process of its own, which is killed (SIGKILL) by its own clock: in a step, or while a file is
being written, after a random number of calls that change the disk. The same command resumes it, and is killed again,
until all kills of the task are used. In the end the weights, the checkpoint's tensors and the metrics are compared with
those of a training that was never killed, and nothing unfinished may be left in the folder.
"""

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "tasks"), str(ROOT / "tests" / "parity"), str(ROOT / "tests")]

from workshop import SILENT, Workshop, smallest  # noqa: E402

from foveate.run_dir import CONFIG, WEIGHTS  # noqa: E402
from foveate.tasks import TASKS, find_task  # noqa: E402
from foveate.tasks.learning import learn  # noqa: E402

STEPS = 6

WRITES = ("open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "shutil.rmtree", "os.truncate")
"""Audit events of what changes the disk."""

LONGEST = 300.0
"""Seconds after which a training counts as hanging."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    asked = parser.parse_args()
    rng, kills, equal = random.Random(asked.seed), 0, 0
    with tempfile.TemporaryDirectory() as name:
        workshop = Workshop(Path(name))
        for place, task in enumerate(asked.tasks):
            count = (place + 1) * asked.kills // len(asked.tasks) - place * asked.kills // len(asked.tasks)
            done, trouble = kill_task(workshop, task, count, rng)
            kills, equal = kills + done, equal + (not trouble)
            print(f"{task}: {done} kills, {trouble or 'the same bits'}", flush=True)
    print(f"{kills} kills, {len(asked.tasks)} tasks, {equal} with the same bits")
    sys.exit(equal < len(asked.tasks))


def kill_task(workshop: Workshop, name: str, kills: int, rng: random.Random) -> tuple[int, str]:
    """How often a training of a task was killed, and what was wrong in the end; empty if nothing was."""
    torch.set_num_threads(1)
    task = find_task(name)
    recipe = workshop.recipe(task, smallest(task).name, workshop.folder / f"{name} whole", steps=STEPS, save_every=2)
    learn(recipe, console=SILENT)
    settings = workshop.folder / f"{name}.json"
    settings.write_text(json.dumps(recipe.as_json()), encoding="utf-8")
    killed, done = workshop.folder / f"{name} killed", 0
    for _ in range(kills):
        done += run(name, settings, killed, draw_moment(rng)) == -signal.SIGKILL
    status = run(name, settings, killed, "never")
    if status != 0:
        return done, f"the training ended with status {status}"
    return done, difference(workshop.folder / f"{name} whole", killed)


def draw_moment(rng: random.Random) -> str:
    """In a step, or before one of the calls that change the disk: of those of the beginning, or of later ones."""
    return rng.choice([f"step {rng.randint(1, STEPS)}", f"write {rng.randint(1, 60)}", f"write {rng.randint(1, 250)}"])


def run(task: str, settings: Path, out: Path, moment: str) -> int | None:
    """The exit status of a training; None for one that hangs. Its process is forked from one that has imported all."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["test_every_task", "foveate.cli.train", "foveate.decoding.beam"])
    process = context.Process(target=train, args=(task, settings, out, moment))
    process.start()
    process.join(LONGEST)
    status = process.exitcode
    process.kill()
    process.join()
    return status


def train(name: str, settings: Path, out: Path, moment: str) -> None:
    """Train, and be killed at a moment."""
    torch.set_num_threads(1)  # bits depend on their number
    values = json.loads(settings.read_text(encoding="utf-8")) | {"out": str(out)}
    kind, _, count = moment.partition(" ")
    callbacks: list[Callable[[Any], object]] = []
    if kind == "write":
        sys.addaudithook(killing_hook(out, int(count)))
    elif kind == "step":
        callbacks.append(lambda row: row["step"] >= int(count) and kill_soon())
    learn(find_task(name).from_json(values, str(settings)), console=SILENT, callbacks=callbacks)


def killing_hook(out: Path, count: int) -> Callable[[str, tuple[Any, ...]], None]:
    """Kills the process before it changes something below a folder for the last of `count` times."""
    left = count

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in WRITES and str(arguments[0]).startswith(str(out)):
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook


def kill_soon() -> None:
    """Kill the process within the next hundredth of a second, whatever it does then."""

    def kill() -> None:
        time.sleep(random.SystemRandom().uniform(0, 0.01))
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()


def difference(whole: Path, killed: Path) -> str:
    """What differs between the folders of two trainings, or was left behind; empty if nothing does."""
    newest = f"checkpoints/step-{STEPS:08d}.safetensors"
    if (whole / WEIGHTS).read_bytes() != (killed / WEIGHTS).read_bytes():
        return "OTHER weights"
    if content(whole / newest) != content(killed / newest):
        return "OTHER checkpoint"
    if rows(whole) != rows(killed):
        return "OTHER metrics"
    if names(whole) != names(killed):
        return f"OTHER files: {sorted(names(whole) ^ names(killed))}"
    configs = [json.loads((folder / CONFIG).read_text(encoding="utf-8")) for folder in (whole, killed)]
    for config in configs:
        config.get("recipe", {}).pop("out", None)
    return "" if configs[0] == configs[1] else "OTHER config.json"


def content(checkpoint: Path) -> bytes:
    """The tensors of a checkpoint, without its metadata, which hold the time."""
    data = checkpoint.read_bytes()
    return data[8 + int.from_bytes(data[:8], "little") :]


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of metrics, without times."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if "second" not in key} for line in lines]


def names(folder: Path) -> set[str]:
    """All files of a run, those that are unfinished included."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


if __name__ == "__main__":
    main()
