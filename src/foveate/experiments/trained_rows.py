"""Trains one model for each row of a table, on data by name, and measures its speed beside the others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import nn

from foveate import models, tasks
from foveate.contracts import label_batch
from foveate.experiments.comparison import DeviceOptions, made_on
from foveate.experiments.measurement_cache import measure_once, training_conditions
from foveate.experiments.measuring import side_by_side
from foveate.files import as_read, read_json_lines
from foveate.training import CrossEntropy, Training
from foveate.training.update import Updater

RESULTS = "row.json"
"""The file of results in the folder of each row."""

TRANSLATOR: dict[str, Any] = {
    "examples": {"source": "emoji", "vocabulary": 1000, "batch": 1024, "validation_examples": 500},
    "model": "transformer-tiny",
}
"""Emoji names, English-French: learned in minutes, and words of a name change places."""

SMALL_TRANSLATOR = {"encoder_layers": 2, "decoder_layers": 2, "dropout": 0.1}
"""What is changed of `transformer-tiny`, so that it learns emoji names in a few hundred steps."""

TAGGER: dict[str, Any] = {"examples": {"source": "brown"}, "model": "transformer-tagger"}
"""Parts of speech of the Brown corpus."""


@dataclass(frozen=True)
class RowResult:
    """The measurements of one row."""

    metrics: dict[str, float]
    """The metrics of the validation at the end."""
    parameters: int


def train_row(
    task: str, recipe: Mapping[str, Any], steps: int, options: DeviceOptions, folder: Path, console: Console
) -> RowResult:
    """The results of a training of `steps` steps, which is done or resumed unless `folder` has them."""
    training = {
        "steps": steps,
        "learning_rate": 3e-3,
        "schedule": "linear",
        "warmup": 100,
        "validate_every": steps,
        "save_every": 250,
        "average": 1,
        "seed": options.seed,
        "device": options.device,
        "threads": options.threads,
    }
    values = {**recipe, "training": training}

    def measure() -> dict[str, Any]:
        kind = tasks.find_task(task).from_json({**values, "out": str(folder)}, "the row")
        tasks.train(kind)
        lines = read_json_lines(folder / "metrics.jsonl")
        metrics = next(line["validation"] for line in reversed(lines) if "validation" in line)
        parameters = sum(parameter.numel() for parameter in tasks.load(folder).model.parameters())
        return {"metrics": metrics, "parameters": parameters}

    console.rule(str(folder))
    measured = measure_once(
        folder / RESULTS,
        as_read(values),
        measure,
        lambda: training_conditions(tasks.load(folder).model, options.device),
    )
    return RowResult(**measured)


def translator_speeds(
    architectures: Mapping[str, Mapping[str, Any]], length: int, batch: int, repeats: int, device: str = "cpu"
) -> dict[str, float]:
    """Milliseconds of a training step of `transformer-tiny` with these changes, on random tokens."""
    sizes: dict[str, Any] = {"src_vocab": 1000, "tgt_vocab": 1000}
    source, target = torch.randint(4, 1000, (batch, length)), torch.randint(4, 1000, (batch, length))
    inputs = {"source": source, "source_lengths": torch.full((batch,), length), "target": target}
    data = label_batch(inputs, target, "random tokens")

    def updater(name: str) -> Callable[[], object]:
        model: nn.Module = models.create("transformer-tiny", **sizes, **architectures[name]).train()
        update = Updater(model, CrossEntropy(), Training(device=device, precision="float32"))
        return partial(update, [data], 0.0, 1)  # a learning rate of 0 does not change the weights

    with made_on(device):
        seconds = side_by_side({name: updater(name) for name in architectures}, repeats)
    return {name: 1000 * took for name, took in seconds.items()}
