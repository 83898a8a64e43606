"""Model FLOPs utilisation: what training does of the operations that the machine can do, on a CPU or a GPU.

    python benchmarks/utilisation.py --model transformer-tiny
    python benchmarks/utilisation.py --model transformer-base --tokens 16384 --device cuda

Counts the operations of the matrix products and of attention in a step, forward and backward, without what is computed
again (Chowdhery et al. 2022, https://arxiv.org/abs/2204.02311), and divides them by the time that a step takes as users
train: with dropout, clipping and AdamW, in the precision of `foveate train`, on made-up sentences. What the machine can
do is the fastest of a few large matrix products, measured before and after in the same precision.
"""

import argparse
import time
from itertools import islice

import foveate  # isort: skip, before torch: its threads shall sleep, not spin, while others work on the machine

import torch
from scaling import VOCABULARY, batches

from foveate.contracts import Batch
from foveate.experiments.flops import flops
from foveate.training import CrossEntropy, Training
from foveate.training.update import Updater

WARM, STEPS, REPEATS = 3, 12, 5

SIZES = {"cpu": (2048,), "cuda": (4096, 8192)}
"""Of the square matrices that tell what a kind of device can do."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="transformer-tiny", help="a preset that translates by attention alone")
    parser.add_argument("--tokens", type=int, default=4096, help="places of a batch")
    parser.add_argument("--device", choices=("auto", *SIZES), default="auto")
    parser.add_argument("--precision", choices=("auto", "float32", "bfloat16"), default="auto")
    asked = parser.parse_args()
    torch.manual_seed(1)
    model = foveate.create(asked.model, src_vocab=VOCABULARY, tgt_vocab=VOCABULARY).train()
    settings = Training(device=asked.device, precision=asked.precision)
    update = Updater(model, CrossEntropy(0.1), settings)
    some = list(islice(batches(asked.tokens), WARM + STEPS))
    kind = torch.bfloat16 if update.bfloat16 else torch.float32
    before = able(update.device, kind)
    seconds = trained(update, some)
    most = max(before, able(update.device, kind))
    done, tokens = (
        sum(counted(update, batch) for batch in some[WARM:]),
        sum(batch.total_weight for batch in some[WARM:]),
    )
    print(f"{asked.model}, batches of {asked.tokens:,} places, {str(kind).removeprefix('torch.')} on {update.device}")
    print(f"{tokens / seconds:,.0f} target tokens/s, {done / tokens / 1e6:,.1f} MFLOP for each")
    print(f"{done / seconds / 1e9:,.0f} GFLOP/s of {most / 1e9:,.0f} that matrix products reach here")
    print(f"model FLOPs utilisation {done / seconds / most:.1%}")


def trained(update: Updater, some: list[Batch]) -> float:
    """Seconds of the steps after those that warm up."""
    began = 0.0
    for number, batch in enumerate(some):
        if number == WARM:
            wait(update.device)
            began = time.perf_counter()
        update([batch], 1e-3, number + 1)
    wait(update.device)
    return time.perf_counter() - began


def counted(update: Updater, batch: Batch) -> int:
    """The operations of one step: the backward pass multiplies twice where the forward pass multiplies once."""
    given = batch.to(update.device).inputs
    with torch.no_grad():
        return 3 * flops(lambda: update.placement(**given))


def able(device: torch.device, kind: torch.dtype) -> float:
    """Operations a second of a large matrix product, the fastest of several sizes and repeats."""
    best = 0.0
    for size in SIZES[device.type]:
        one, other = (torch.randn(size, size, device=device).to(kind) for _ in range(2))
        one @ other
        for _ in range(REPEATS):
            wait(device)
            began = time.perf_counter()
            one @ other
            wait(device)
            best = max(best, 2 * size**3 / (time.perf_counter() - began))
    return best


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
