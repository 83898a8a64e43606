"""Two processes of one thread each beside one process of two threads: the same training, and at what speed.

    python benchmarks/scaling.py

One process, and two that torchrun starts, take turns, so that a busy machine slows all alike. The two share the
examples, with a replica of the model on each or with a shard on each (data parallel), or have the same examples and
half of every layer each (tensor parallel). Each makes five steps without dropout, of which the first gradients
and all losses are compared, then trains `transformer-tiny` with its own dropout on made-up sentences, in batches of
4,096 tokens, float32. It takes about four minutes on two cores that nothing else uses. Exits with status 1 when a
gradient differs by more than 1e-6, or a loss by more than one part in 100,000.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import foveate  # isort: skip, before torch: its threads shall sleep, not spin, while others work on the machine

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.distributed.tensor import DTensor

from foveate.contracts import IGNORE, Batch, label_batch
from foveate.special_tokens import LEARNED
from foveate.training import CrossEntropy, Training
from foveate.training.hardware import choose_device
from foveate.training.parallel import Processes, join_process_group
from foveate.training.update import Updater

PAD, START, END = LEARNED.pad, LEARNED.start, LEARNED.end

WAYS = {
    "one process, 2 threads": ("alone", 2),
    "two, replicas": ("replicate", 1),
    "two, shards": ("shard", 1),
    "two, layers split": ("tensor", 1),
}
ROUNDS, WARM, STEPS, COMPARED = 3, 2, 8, 5
VOCABULARY, TOKENS = 8000, 4096
OF_GRADIENTS, OF_LOSSES = 1e-6, 1e-5


def batches(places: int = TOKENS) -> Iterator[Batch]:
    """Sentences of one length a batch, 8 to 24 words, with translations up to a quarter shorter."""
    generator = torch.Generator().manual_seed(1)
    while True:
        longest = int(torch.randint(8, 25, (1,), generator=generator))
        rows = places // longest
        source = torch.randint(4, VOCABULARY, (rows, longest), generator=generator)
        lengths = torch.randint(3 * longest // 4, longest + 1, (rows,), generator=generator)
        real = torch.arange(longest) < lengths[:, None]
        labels = torch.randint(4, VOCABULARY, (rows, longest), generator=generator).masked_fill(~real, IGNORE)
        labels[torch.arange(rows), lengths - 1] = END
        target = torch.cat([torch.full((rows, 1), START), labels[:, :-1].masked_fill(~real[:, 1:], PAD)], 1)
        inputs = {"source": source, "source_lengths": torch.full((rows,), longest), "target": target}
        yield label_batch(inputs, labels, "made-up sentences")


def updater(parallel: str, processes: Processes, **changed: Any) -> Updater:
    """What trains."""
    torch.manual_seed(1)
    model = foveate.create("transformer-tiny", src_vocab=VOCABULARY, tgt_vocab=VOCABULARY, **changed)
    return Updater(model.train(), CrossEntropy(0.1), settings_of(parallel), processes)


def settings_of(parallel: str) -> Training:
    placing: Any = "auto" if parallel == "alone" else parallel
    return Training(device="cpu", precision="float32", parallel=placing, clip=None)


def steps(update: Updater) -> tuple[dict[str, Tensor], Tensor]:
    """The gradients of the first step, on two batches, and the loss of each."""
    gradients: dict[str, Tensor] = {}

    def keep(*_: object) -> None:
        for name, parameter in update.placement.working.named_parameters():
            gradient = parameter.grad
            assert gradient is not None
            whole = gradient.full_tensor() if isinstance(gradient, DTensor) else gradient
            gradients.setdefault(name.removeprefix("module."), whole.clone())

    update.optimizer.register_step_pre_hook(keep)
    data = batches()
    done = [update([next(data), next(data)], 0.001, number + 1) for number in range(COMPARED)]
    return gradients, torch.tensor([step.sums["loss"] / step.weight for step in done], dtype=torch.float64)


def work(parallel: str, threads: int, folder: Path) -> None:
    """What one of the processes does; the main one writes what came of it."""
    torch.set_num_threads(threads)
    with join_process_group(choose_device("cpu"), settings_of(parallel).splitting) as processes, processes.watch():
        # Not ReLU: what is nearly 0 falls to the other side of it when a sum is rounded differently.
        gradients, losses = steps(updater(parallel, processes, dropout=0.0, activation="gelu"))
        train, data, tokens, began = updater(parallel, processes), batches(), 0, 0.0
        for number in range(WARM + STEPS):
            if number == WARM:
                began, tokens = time.perf_counter(), 0
            tokens += train([next(data)], 0.001, number + 1).weight
        speed = tokens / (time.perf_counter() - began)
        if processes.main:
            save_file(gradients | {"speed": torch.tensor(speed), "losses": losses}, folder / f"{parallel}.safetensors")


def measured(parallel: str, threads: int, folder: Path) -> dict[str, Tensor]:
    """What came of it, in processes of their own."""
    launcher = [] if parallel == "alone" else ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    program = [sys.executable, *launcher, __file__, parallel, str(threads), str(folder)]
    subprocess.run(program, check=True)
    return load_file(folder / f"{parallel}.safetensors")


def main() -> None:
    speeds: dict[str, list[float]] = {way: [] for way in WAYS}
    found: dict[str, dict[str, Tensor]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for way, (parallel, threads) in WAYS.items():
                found[way] = measured(parallel, threads, Path(folder))
                speeds[way].append(float(found[way].pop("speed")))
    alone, *others = WAYS
    print(f"{alone}: {statistics.median(speeds[alone]):,.0f} target tokens/s")
    right = True
    for way in others:
        ratios = [speed / rival for speed, rival in zip(speeds[way], speeds[alone], strict=True)]
        losses, rivals = found[way].pop("losses"), found[alone]["losses"]
        of_losses = float((losses / rivals - 1).abs().max())
        assert found[way].keys() == found[alone].keys() - {"losses"}
        differences = [(found[way][name] - found[alone][name]).abs().max() for name in found[way]]
        of_gradients = float(torch.stack(differences).max())  # which is NaN where one of them is
        right &= of_gradients <= OF_GRADIENTS and of_losses <= OF_LOSSES
        between = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"{way}: {statistics.median(speeds[way]):,.0f}, {statistics.median(ratios):.2f} times ({between})")
        print(f"  largest difference of a gradient {of_gradients:.1e}, of a loss {of_losses:.1e} of it")
    sys.exit(not right)


if __name__ == "__main__":
    if len(sys.argv) < 4:  # more are those of the processes that it starts
        argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
        main()
    else:
        work(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
