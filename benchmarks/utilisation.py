"""Model FLOPs utilisation: what training does of the operations that the machine can do, on a CPU or a GPU.

    python benchmarks/utilisation.py --model gpt2 --batch 2 --length 256
    python benchmarks/utilisation.py --model gpt2 --batch 32 --length 1024 --device cuda --compile
    python benchmarks/utilisation.py --model transformer-tiny --tokens 4096

A step is one of `foveate train`: forward, backward, clipping and fused AdamW, in its precision, on random tokens or
made-up sentences. The operations of a step are counted without those that are computed again (Chowdhery et al. 2022,
https://arxiv.org/abs/2204.02311): of a language model 6 N + 12 L C T for each token, with N weights (without the table
of positions), L layers of width C and T tokens; of a translator those of its matrix products and attention.

What the machine can do is `--peak`, or what the maker of an A100, H100 or H200 states for bfloat16, or else the fastest
of a few large matrix products, measured before and after in the same precision.
"""

import argparse
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import foveate  # isort: skip, before torch: its threads shall sleep, not spin, while others work on the machine

import torch
from scaling import VOCABULARY, batches

from foveate import models
from foveate.accelerator import accelerator_names, is_accelerator
from foveate.cli.size import GPUS
from foveate.contracts import Batch, label_batch
from foveate.experiments.flops import flops
from foveate.training import CrossEntropy, Training
from foveate.training.update import Updater

REPEATS = 5

SIZES, SIZES_ON_ACCELERATORS = (2048,), (4096, 8192)
"""Of the square matrices that tell what a processor and what an accelerator can do."""


def main() -> None:
    asked = arguments()
    torch.manual_seed(1)
    if asked.threads:
        torch.set_num_threads(asked.threads)
    writes = "vocabulary" in models.sizes_of_data(models.preset(asked.model).family)  # alone, without a source
    sizes = {"vocabulary": asked.vocabulary} if writes else {"src_vocab": VOCABULARY, "tgt_vocab": VOCABULARY}
    values = {} if asked.dropout is None else {"dropout": asked.dropout}
    model: Any = foveate.create(asked.model, **sizes, **values).train()
    objective = CrossEntropy(0.0 if writes else 0.1)
    settings = Training(device=asked.device, precision=asked.precision, compile=asked.compile)
    update = Updater(model, objective, settings)
    data = random_tokens(asked) if writes else batches(asked.tokens)
    some = list(islice(data, asked.warm + asked.steps))
    kind = update.autocast_type or torch.float32
    stated = asked.peak * 1e12 if asked.peak else stated_peak(update.device, kind)
    before = stated or able(update.device, kind)
    seconds = trained(update, some, asked.warm)
    most = stated or max(before, able(update.device, kind))
    measured = some[asked.warm :]
    tokens = sum(batch.total_weight for batch in measured)
    done = tokens * by_formula(model, asked.length) if writes else sum(counted(update, batch) for batch in measured)
    size = f"{asked.batch} x {asked.length:,} tokens" if writes else f"{asked.tokens:,} places"
    print(f"{asked.model}, batches of {size}, {str(kind).removeprefix('torch.')} on {name_of(update.device)}")
    print(f"{tokens / seconds:,.0f} tokens/s, {done / tokens / 1e6:,.1f} MFLOP for each, {asked.steps} steps")
    source = "stated" if stated else "that matrix products reach here"
    print(f"{done / seconds / 1e9:,.0f} GFLOP/s of {most / 1e9:,.0f} {source}")
    print(f"model FLOPs utilisation {done / seconds / most:.1%}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gpt2", help="a preset of a GPT, GPT-NeoX, Llama or translator")
    parser.add_argument("--batch", type=int, default=2, help="sequences of a language model's batch")
    parser.add_argument("--length", type=int, default=256, help="tokens of a sequence")
    parser.add_argument("--vocabulary", type=int, default=50304, help="tokens of a language model's vocabulary")
    parser.add_argument("--dropout", type=float, help="by default the preset's")
    parser.add_argument("--tokens", type=int, default=4096, help="places of a translator's batch")
    parser.add_argument("--device", default="auto", help="cpu, or a kind of accelerator")
    parser.add_argument("--precision", choices=("auto", "float32", "bfloat16"), default="auto")
    parser.add_argument("--peak", type=float, help="TFLOP/s of the device, where they are known")
    parser.add_argument("--compile", action="store_true", help="with torch.compile")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--warm", type=int, default=3, help="steps before those that are timed")
    parser.add_argument("--steps", type=int, default=12)
    return parser.parse_args()


def random_tokens(asked: argparse.Namespace) -> Iterator[Batch]:
    """Batches of full length for a language model."""
    while True:
        tokens = torch.randint(asked.vocabulary, (asked.batch, asked.length + 1))
        yield label_batch({"tokens": tokens[:, :-1].clone()}, tokens[:, 1:].clone(), "random tokens")


def by_formula(model: Any, length: int) -> int:
    """The operations of a language model's training for each token."""
    positions = sum(table.numel() for name, table in model.named_parameters() if ".positions." in name)
    weights = sum(parameter.numel() for parameter in model.parameters()) - positions
    return 6 * weights + 12 * model.config.layers * model.config.width * length


def counted(update: Updater, batch: Batch) -> int:
    """The operations of one step: the backward pass multiplies twice where the forward pass multiplies once."""
    given = batch.to(update.device).inputs
    with torch.no_grad():
        return 3 * flops(lambda: update.placement(**given))


def trained(update: Updater, some: list[Batch], warm: int) -> float:
    """Seconds of the steps after those that warm up."""
    began = 0.0
    for number, batch in enumerate(some):
        if number == warm:
            wait(update.device)
            began = time.perf_counter()
        update([batch], 1e-4, number + 1)
    wait(update.device)
    return time.perf_counter() - began


def stated_peak(device: torch.device, kind: torch.dtype) -> float | None:
    """The operations a second that a GPU's maker states in half precision."""
    if not is_accelerator(device) or kind != torch.bfloat16:
        return None
    found = name_of(device).lower()
    return next((speed for name, (_, speed) in GPUS.items() if name in found), None)


def able(device: torch.device, kind: torch.dtype) -> float:
    """Operations a second of a large matrix product, the fastest of several sizes and repeats."""
    best = 0.0
    for size in SIZES_ON_ACCELERATORS if is_accelerator(device) else SIZES:
        one, other = (torch.randn(size, size, device=device).to(kind) for _ in range(2))
        one @ other
        for _ in range(REPEATS):
            wait(device)
            began = time.perf_counter()
            one @ other
            wait(device)
            best = max(best, 2 * size**3 / (time.perf_counter() - began))
    return best


def name_of(device: torch.device) -> str:
    return (
        accelerator_names()[device.index or 0] if is_accelerator(device) else f"{torch.get_num_threads()} CPU threads"
    )


def wait(device: torch.device) -> None:
    if is_accelerator(device):
        torch.accelerator.synchronize(device)


if __name__ == "__main__":
    main()
