"""What `foveate train ... --compile` gains on this machine: steps of training, compiled and not, by turns.

    python benchmarks/compiled_training.py [--models vit-tiny gpt-tiny transformer-tiny] [--steps 12] [--width 128]

Each model learns from the same made-up batches of several lengths in both ways, in one process with one thread, without
dropout, in single precision. The time of a step is its CPU time; the ratio is that of both medians, and the seconds
are those that compiling took in the first steps. Needs a C++ compiler.
"""

import argparse
import statistics
import time
from collections.abc import Iterator

import torch

import foveate
from foveate.contracts import Batch, label_batch
from foveate.training import CrossEntropy, Training
from foveate.training.update import Updater

TOKENS, ROWS = 1000, 32
FIRST = 4
"""Steps that are not counted: they compile."""


def batches(model: str, steps: int) -> Iterator[Batch]:
    generator = torch.Generator().manual_seed(1)

    def tokens(length: int) -> torch.Tensor:
        return torch.randint(4, TOKENS, (ROWS, length), generator=generator)

    for number in range(steps):
        length = 28 + 4 * (number % 4)
        labels = tokens(length)
        if model.startswith("transformer"):
            inputs = {"source": tokens(length + 2), "source_lengths": torch.full((ROWS,), length + 2), "target": labels}
        elif model.startswith("gpt"):
            inputs = {"tokens": tokens(length)}
        else:
            inputs = {"pixels": torch.rand(2 * ROWS, 1, 28, 28, generator=generator)}
            labels = torch.randint(10, (2 * ROWS, 1), generator=generator)
        yield label_batch(inputs, labels, "rows")


def create(model: str, width: int) -> torch.nn.Module:
    torch.manual_seed(1)
    sizes = {"width": width, "dropout": 0.0}
    if model.startswith("transformer"):
        return foveate.create(model, src_vocab=TOKENS, tgt_vocab=TOKENS, **sizes)
    if model.startswith("gpt"):
        return foveate.create(model, vocabulary=TOKENS, **sizes)
    return foveate.create(model, classes=10, channels=1, image_size=28, patch=4, **sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["vit-tiny", "gpt-tiny", "transformer-tiny"])
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--width", type=int, default=128)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    for model in chosen.models:
        ways = [
            Updater(
                create(model, chosen.width).train(),
                CrossEntropy(0.0),
                Training(device="cpu", precision="float32", compile=compiled),
            )
            for compiled in (False, True)
        ]
        times: list[list[float]] = [[], []]
        losses: list[list[float]] = [[], []]
        for number, batch in enumerate(batches(model, FIRST + chosen.steps), 1):
            for place, update in enumerate(ways):
                begin = time.process_time()
                found = update([batch], 1e-3, number)
                times[place].append(time.process_time() - begin)
                losses[place].append(found.sums["loss"] / found.weight)
        plain, compiled = (statistics.median(way[FIRST:]) for way in times)
        apart = max(abs(one - other) for one, other in zip(*losses, strict=True))
        print(
            f"{model}: {1e3 * plain:.0f} ms a step, compiled {1e3 * compiled:.0f}: {plain / compiled:.2f} times as "
            f"fast; {sum(times[1][:FIRST]):.0f} s to compile, losses at most {apart:.1e} apart",
            flush=True,
        )


if __name__ == "__main__":
    main()
