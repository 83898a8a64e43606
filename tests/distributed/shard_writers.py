"""Several processes that write and read parts of checkpoints: `shard_writers.py SCENE FOLDER SIZE RANK` is one."""

import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from split_processes import Sequences, create

from foveate.training import CrossEntropy, Training
from foveate.training.checkpoints import Checkpoints
from foveate.training.parallel import join_process_group
from foveate.training.progress import Progress
from foveate.training.update import Updater


def saved(to: Path, parallel: str = "auto", begun: Path | None = None, step: int = 1) -> tuple[Progress, list[str]]:
    """Save what another training saved, or a training of one step, called `step`; returns what was said of that."""
    settings = Training(device="cpu", precision="float32", save_every=1, parallel=parallel)  # type: ignore[arg-type]
    with join_process_group(torch.device("cpu"), settings.splitting) as processes:
        updater = Updater(create("gpt", max_length=16).train(), CrossEntropy(), settings, processes)
        found: Any = (Progress(step=step), [])
        if begun is None:
            updater([Sequences("gpt").batch(0)], 0.01, 1)
        else:
            then = Checkpoints(begun / "checkpoints", settings, {}, processes)
            found = then.resume(updater.placement, updater.optimizer)
        Checkpoints(to / "checkpoints", settings, {}, processes).save(updater.placement, updater.optimizer, found[0])
    return found


def two_begin(folder: Path) -> None:
    saved(folder / "shard-2", "shard")
    saved(folder / "tensor-2", "tensor")
    for step in (1, 2):
        saved(folder / "two-steps", "shard", step=step)


def four_go_on(folder: Path) -> None:
    for way in ("shard", "tensor", "both"):
        saved(folder / f"{way}-4", way, folder / "shard-2")
    saved(folder / "from-tensor-4", "both", folder / "tensor-2")


def two_end(folder: Path) -> None:
    for way in ("shard", "tensor"):
        saved(folder / f"{way}-2-of-4", way, folder / "both-4")
    saved(folder / "replicas", "replicate", folder / "both-4")
    saved(folder / "shard-of-one-file", "shard", folder / "replicas")
    saved(folder / "shard-2", "shard", folder / "shard-2")  # the same step again, before the end of a training


if __name__ == "__main__":
    torch.set_num_threads(1)
    scene, place, size, number = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    dist.init_process_group("gloo", init_method=f"file://{place}/meeting-{scene}", rank=number, world_size=size)
    {"two_begin": two_begin, "four_go_on": four_go_on, "two_end": two_end}[scene](place)
