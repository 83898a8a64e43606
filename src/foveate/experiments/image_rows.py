"""Trains one image classifier for each row of a table, on images by name that are read once."""

import itertools
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import nn

from foveate import models
from foveate.contracts import Batch
from foveate.data.buckets import BucketedBatches, OneBucket
from foveate.data.dataset import Dataset
from foveate.data.images.labelled import ImageFormat
from foveate.data.sources import open_source
from foveate.errors import UserError, at_least
from foveate.experiments.comparison import DeviceOptions
from foveate.experiments.flops import flops
from foveate.experiments.measurement_cache import measure_once
from foveate.forms.image import SquareImage
from foveate.forms.label import Label, count_labels
from foveate.forms.processor import Processor
from foveate.training import CrossEntropy, Training
from foveate.training.progress import Progress, learning_rate
from foveate.training.update import Updater


@dataclass
class ImageOptions(DeviceOptions):
    """The images that the rows of a table learn, and how."""

    source: str = "fashion-mnist"
    """Images by name: see `foveate data`."""
    size: int = 14
    """Height and width that images are scaled to."""
    batch: int = 64
    """Images of a step."""
    rate: float = 3e-3
    """Peak learning rate, of Muon for matrices and convolutions and AdamW for the rest."""
    validation_images: int = 2000
    """Images held out that the accuracy is measured on, at most."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        for name in ("size", "batch", "validation_images"):
            at_least(1, name, getattr(self, name))
        if not self.rate > 0:
            raise UserError(f"rate is {self.rate}, but must be above 0")


@dataclass(frozen=True)
class ImageRow:
    """The measurements of one row."""

    accuracy: float
    """On images held out, in percent."""
    parameters: int
    steps: int
    flops: int
    """Floating-point operations of the whole training."""
    seconds: float
    """Time of the processor that the steps took."""


class ImageRows:
    """The images, read when the first row is trained, and the rows that `--out` has already."""

    def __init__(self, options: ImageOptions, folder: Path, console: Console) -> None:
        self._options, self._folder, self._console = options, folder, console
        self._opened: tuple[BucketedBatches, list[Batch], dict[str, int]] | None = None

    def path(self, name: str) -> Path:
        """The file of a row's results."""
        return self._folder / f"{name.replace(' ', '-').replace('/', '-')}.json"

    def train(
        self, name: str, preset: str, changes: Mapping[str, Any], *, steps: int | None = None, budget: float = 0
    ) -> ImageRow:
        """A row: a preset with changes of its sizes, trained for `steps` steps or within a budget of operations."""
        names = {field.name for field in fields(ImageOptions)} - {"out", "threads"}
        chosen = {name: getattr(self._options, name) for name in sorted(names)}
        of = {**chosen, "preset": preset, "changes": dict(changes), "steps": steps, "budget": budget}
        values = measure_once(self.path(name), of, lambda: asdict(self._train(preset, changes, steps, budget)))
        row = ImageRow(**values)
        self._console.print(f"{name}: {row.accuracy:.1f} % after {row.steps:,} steps", highlight=False)
        return row

    def _train(self, preset: str, changes: Mapping[str, Any], steps: int | None, budget: float) -> ImageRow:
        options = self._options
        batches, validation, sizes = self._opened = self._opened or self._open()
        torch.manual_seed(options.seed)
        model = _model(preset, sizes, changes)
        of_a_step = _flops_of_a_step(model, next(iter(batches.epoch(0))))
        steps = steps if steps is not None else max(1, round(budget / of_a_step))
        settings = Training(
            steps=steps,
            optimizer="muon",
            learning_rate=options.rate,
            schedule="cosine",
            warmup=max(1, steps // 10),
            weight_decay=0.05,
            device=options.device,
        )
        update, progress = Updater(model.train(), CrossEntropy(0.1), settings), Progress()
        begin = time.process_time()
        for batch in itertools.islice(_endless(batches), steps):
            update([batch], learning_rate(settings, progress), progress.step + 1)
            progress.advance(0, 0.0)
        seconds = time.process_time() - begin
        count = sum(parameter.numel() for parameter in model.parameters())
        return ImageRow(_accuracy(model, validation), count, steps, steps * of_a_step, seconds)

    def _open(self) -> tuple[BucketedBatches, list[Batch], dict[str, int]]:
        options = self._options
        splits = open_source(options.source, task="classify-image")
        channels = 1 if splits.train[0].read().mode == "L" else 3
        labels = count_labels(example.label for example in splits.train)
        processor = Processor(SquareImage(format=ImageFormat(options.size, channels)), Label(labels))
        held_out = Dataset("validation", splits.dev.some(options.validation_images), "images")
        validation = list(BucketedBatches(OneBucket(held_out, processor), 250, 0).in_order())
        batches = BucketedBatches(OneBucket(splits.train, processor), options.batch, options.seed)
        return batches, validation, processor.sizes()


def _model(preset: str, sizes: Mapping[str, int], changes: Mapping[str, Any]) -> nn.Module:
    kind = models.config_class(models.preset(preset).family)
    known = {name: size for name, size in sizes.items() if name in kind.__dataclass_fields__}
    model = models.create(preset, **{**known, **changes})
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def _flops_of_a_step(model: nn.Module, batch: Batch) -> int:
    """Operations of a forward and backward pass."""
    count = flops(lambda: model(**batch.inputs).logits.sum().backward())
    model.zero_grad()
    return count


def _endless(batches: BucketedBatches) -> Iterator[Batch]:
    for epoch in itertools.count():
        yield from batches.epoch(epoch)


def _accuracy(model: nn.Module, batches: list[Batch]) -> float:
    device, model = next(model.parameters()).device, model.eval()
    with torch.inference_mode():
        there = (batch.to(device) for batch in batches)
        right = [(model(**batch.inputs).logits.argmax(-1) == batch.labels[:, 0]).float() for batch in there]
    return 100 * float(torch.cat(right).mean())
