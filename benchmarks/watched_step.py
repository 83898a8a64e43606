"""What `foveate train --watch-attention` costs: statistics of every head at each validation, beside the steps between.

    python benchmarks/watched_step.py [--layers 4] [--length 256] [--batch 16] [--every 50]

A small GPT-2 learns random tokens by the step of `foveate train`; every 50 steps, the fewest of any task's default,
the attention of 16 examples is watched. The times are CPU times with one thread, of which the medians count. The bound
is 3 % of the steps. Exits with status 1 where it is missed.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import tyro

from foveate import models
from foveate.contracts import label_batch
from foveate.training import CrossEntropy, Training
from foveate.training.attention_statistics import attention_statistics
from foveate.training.update import Updater

BOUND = 0.03


@dataclass
class Settings:
    layers: int = 4
    length: int = 256
    """Tokens of an example."""
    batch: int = 16
    """Examples of a step."""
    every: int = 50
    """Steps from one validation to the next."""
    rounds: int = 5


def seconds(run: Callable[[], Any]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def main(settings: Settings) -> int:
    torch.manual_seed(0)
    sizes = {
        "layers": settings.layers,
        "dropout": 0.0,
        "vocabulary": 2000,
        "max_length": settings.length,
        "width": 256,
        "heads": 8,
        "feedforward": 1024,
    }
    model = models.create("gpt2", **sizes).train()
    update = Updater(model, CrossEntropy(0.0), Training(device="cpu", precision="float32", clip=1.0))
    tokens = torch.randint(1, 2000, (settings.batch, settings.length + 1))
    batch = label_batch({"tokens": tokens[:, :-1]}, tokens[:, 1:], "text")
    steps, watched = [], []
    for number in range(settings.rounds + 1):
        steps.append(seconds(lambda number=number: update([batch], 1e-4, number + 1)))
        watched.append(seconds(lambda: attention_statistics(model, batch)))
    step, watch = statistics.median(steps[1:]), statistics.median(watched[1:])
    share = watch / (settings.every * step)
    print(f"a step {step:.3f} s, watching {watch:.3f} s: {watch / step:.2f} steps")
    print(f"of {settings.every} steps, from one validation to the next: {100 * share:.2f} %, bound {100 * BOUND:.0f} %")
    return int(share > BOUND)


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Settings, description=__doc__)))
