"""Tiny trainings, alone or as one of two processes: `two_processes.py SCENES FOLDER RANK` is one of two processes.

SCENES is "all", what the tests look at; "missing", where rank 1 is killed while rank 0 validates; or "failing", where
rank 1 finds something wrong.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    import jaxtyping

    jaxtyping.install_import_hook("foveate", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

import torch
import torch.distributed as dist
from rich.console import Console
from safetensors.torch import save_file
from torch import nn
from torch.distributed.tensor import DTensor

import foveate
from foveate.contracts import IGNORE, Batch, Output, label_batch
from foveate.errors import UserError
from foveate.special_tokens import LEARNED
from foveate.training import CrossEntropy, Result, Training, Validation, train
from foveate.training.hardware import choose_device
from foveate.training.parallel import join_process_group, watch
from foveate.training.update import Updater

PAD, START = LEARNED.pad, LEARNED.start

VOCABULARY = 17

ROWS = (3, 1, 5, 2)
"""Of the batches, in turn: with one row, the second process has none."""


class TinyBatches:
    """Sequences to copy, with lengths from 1 to 5, and what multiplies the logits of each row."""

    def __init__(self, length: int = 11, poisoned: str = "", shift: int = 0) -> None:
        self.length, self.poisoned, self.shift = length, poisoned, shift

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        for index in range(skip, self.length):
            yield self.batch(number, index)

    def batch(self, number: int, index: int) -> Batch:
        generator = torch.Generator().manual_seed(1000 * number + index + self.shift)
        rows = ROWS[index % len(ROWS)]
        lengths = torch.randint(1, 6, (rows,), generator=generator)
        real = torch.arange(int(lengths.max())) < lengths[:, None]
        source = torch.randint(4, VOCABULARY, real.shape, generator=generator).masked_fill(~real, PAD)
        target = torch.cat([torch.full((rows, 1), START), source[:, :-1]], 1)
        scale = torch.ones(rows)
        name = f"batch {index} of epoch {number}"
        if name == self.poisoned:
            scale[1] = torch.nan
        inputs = {"source": source, "source_lengths": lengths, "target": target, "scale": scale}
        return label_batch(inputs, source.masked_fill(~real, IGNORE), name)


class Model(nn.Module):
    """A Transformer of one block each, whose widths two processes cannot share evenly."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(3)
        sizes = {"width": 10, "heads": 2, "feedforward": 7, "encoder_layers": 1, "decoder_layers": 1}
        values = {**sizes, "src_vocab": VOCABULARY, "tgt_vocab": VOCABULARY, "dropout": dropout}
        self.inner = foveate.create("transformer-tiny", **values)

    def forward(self, scale: torch.Tensor, **inputs: torch.Tensor) -> Output:
        return Output(self.inner(**inputs).logits * scale[:, None, None])


def measure(model: nn.Module) -> dict[str, float]:
    """The loss on an epoch that is not trained on; draws random numbers too, as a sampling decoder would."""
    torch.rand(3)
    losses = [CrossEntropy()(model(**batch.inputs), batch) for batch in TinyBatches(3).epoch(999)]
    return {"loss": sum(float(loss.total) for loss in losses)}


VALIDATION = Validation(measure, "loss", higher_is_better=False)


def run(
    folder: Path, steps: int, dropout: float = 0.0, batches: Any = None, validation: Any = VALIDATION, **settings: Any
) -> tuple[nn.Module, Result]:
    """Train a tiny model with settings that make much happen in few steps."""
    often: dict[str, Any] = {"save_every": 2, "validate_every": 3, "log_every": 1, "accumulate": 2, "average": 2}
    rates = {"learning_rate": 0.01, "warmup": 3, "clip": 0.5, "epsilon": 1e-3}
    chosen = {**often, **rates, "device": "cpu", "threads": 1, "precision": "float32", **settings}
    model = Model(dropout)
    training = Training(steps=steps, **chosen)
    console = Console(file=StringIO())
    result = train(model, batches or TinyBatches(), CrossEntropy(0.1), training, folder, validation, console=console)
    return model, result


def gradients(parallel: str = "auto") -> dict[str, torch.Tensor]:
    """Of one step on two batches, the second of which has one row."""
    settings = Training(device="cpu", precision="float32", parallel=parallel, clip=None)  # type: ignore[arg-type]
    found: dict[str, torch.Tensor] = {}
    with join_process_group(choose_device("cpu")) as processes:
        updater = Updater(Model(), CrossEntropy(0.1), settings, processes)

        def keep(*_: Any) -> None:
            for name, parameter in updater.placement.working.named_parameters():
                gradient = parameter.grad
                assert gradient is not None
                whole = gradient.full_tensor() if isinstance(gradient, DTensor) else gradient
                found[name.removeprefix("module.")] = whole.clone()

        updater.optimizer.register_step_pre_hook(keep)
        update = updater([TinyBatches().batch(0, index) for index in (0, 1)], 0.01, 1)
    return {**found, "norm": torch.tensor(update.gradient_norm)}


def refused(action: Callable[..., object], *arguments: Any, **settings: Any) -> str:
    """What the user is told."""
    try:
        action(*arguments, **settings)
    except UserError as error:
        return str(error)
    return "nothing was wrong"


class Unused(Model):
    """Has a layer that nothing uses."""

    def __init__(self) -> None:
        super().__init__()
        self.idle = nn.Linear(3, 5)


class Single(Model):
    """Has a parameter that is one number."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.tensor(2.0))


def trained(model: nn.Module, folder: Path, **settings: Any) -> Result:
    training = Training(steps=2, device="cpu", threads=1, **settings)
    return train(model, TinyBatches(), CrossEntropy(), training, folder, console=Console(file=StringIO()))


def all_scenes(folder: Path, rank: int) -> dict[str, Any]:
    """What two processes do, in both ways to place a model; "from-one" holds a training of one process."""
    told: dict[str, Any] = {}
    for parallel in ("replicate", "shard"):
        here = folder / parallel
        found = gradients(parallel)
        model, result = run(here / "whole", 6, parallel=parallel)
        told[f"{parallel} result"] = [result.step, result.kept, result.metrics]
        if rank == 0:
            save_file(found, here / "gradients.safetensors")
        save_file({name: value.clone() for name, value in model.state_dict().items()}, here / f"{rank}.safetensors")
        run(here / "from-one", 6, parallel=parallel)
        run(here / "to-one", 3, parallel=parallel)
        for name, steps in (("unbroken", 6), ("parts", 3), ("parts", 6)):
            run(here / name, steps, dropout=0.3, parallel=parallel)
        poisoned = TinyBatches(poisoned="batch 4 of epoch 0")
        told[f"{parallel} poisoned"] = refused(run, here / "nan", 6, batches=poisoned, parallel=parallel)
    told["metric"] = refused(run, folder / "metric", 6, validation=Validation(measure, "lost"))
    told["data"] = refused(run, folder / "data", 6, batches=TinyBatches(shift=rank))
    told["unused"] = refused(trained, Unused(), folder / "unused", parallel="replicate")
    told["unused shards"] = refused(trained, Unused(), folder / "unused", parallel="shard")
    told["single"] = refused(trained, Single(), folder / "single", parallel="shard")
    return told


def missing(folder: Path, rank: int) -> None:
    """Rank 1 is killed while rank 0 measures and needs nobody."""
    watch.GRACE = 0.3

    def slow(model: nn.Module) -> dict[str, float]:
        (folder / "measuring").touch()
        time.sleep(60)
        return {"loss": 1.0}

    def die() -> None:
        while not (folder / "measuring").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

    if rank == 1:
        threading.Thread(target=die).start()
    run(folder / "missing", 12, validation=Validation(slow, "loss", higher_is_better=False))


def failing(folder: Path, rank: int) -> None:
    """Rank 1 has trouble of its own, in the middle of the first epoch."""

    class Troubled(TinyBatches):
        def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
            yield from islice(super().epoch(number, skip), 5)
            if rank == 1:
                raise UserError("trouble of its own")

    run(folder / "failing", 12, batches=Troubled())


if __name__ == "__main__":
    scenes, place, number = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{place}/meeting-{scenes}", rank=number, world_size=2)
    outcome = {"all": all_scenes, "missing": missing, "failing": failing}[scenes](place, number)
    (place / f"rank-{number}.json").write_text(json.dumps(outcome), encoding="utf-8")
