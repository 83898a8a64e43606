"""The training loop: all that happens to a model while it learns, in the order in which it happens."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from rich.console import Console
from torch import nn

from foveate import bundle
from foveate.contracts import Batch, UserError
from foveate.training.checkpoints import CHANGED, Checkpoints
from foveate.training.display import Display
from foveate.training.interruption import Interrupted, Interruption
from foveate.training.journal import Journal, JsonLines, TensorBoard, Writer
from foveate.training.objectives import Objective
from foveate.training.settings import Progress, Training, learning_rate
from foveate.training.update import Updater
from foveate.training.validation import Validation


@runtime_checkable
class Batches(Protocol):
    """Training data, the same whenever the same epoch is asked for."""

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of an epoch (counted from 0) after the first `skip` ones."""


@dataclass
class Result:
    """What training ended with."""

    step: int
    kept: str
    """Which weights the model has now: "step 500", "the average of steps 100, 200, 300"."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Their validation, where there is one."""


def train(
    model: nn.Module,
    batches: Batches,
    objective: Objective,
    settings: Training,
    folder: Path | str,
    validation: Validation | None = None,
    resume: bool = True,
    identity: Mapping[str, Any] | None = None,
    console: Console | None = None,
) -> Result:
    """Train `model` in place, and leave it with the weights that validate best: the best checkpoint's or the average's.

    `folder` gets `checkpoints/` and `metrics.jsonl`; a training that it holds already is resumed from its newest
    checkpoint, unless not `resume`. `identity` (JSON values) is what else must be the same then: the model, the data.

    Raises UserError for settings, data or a folder that do not work and for a loss that is not finite, and Interrupted
    after Ctrl-C.
    """
    settings.check()
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    folder = Path(folder)
    updater = Updater(model, objective, settings)
    checkpoints = Checkpoints(folder / "checkpoints", settings, identity or {})
    if not resume:
        checkpoints.refuse()
    progress, damaged = checkpoints.resume(model, updater.optimizer)
    began = time.monotonic() - progress.seconds
    console = console or Console(stderr=True)
    _greet(console, progress, damaged)
    display = Display(console, settings, progress, validation.metric if validation else None)
    with closing(Journal(_writers(folder, settings, progress, display))) as journal, Interruption() as interruption:
        model.train()
        for group in _groups(batches, progress, settings):
            update = updater(group, learning_rate(settings, progress), progress.step + 1)
            progress.advance(update.tokens, time.monotonic() - began)
            journal.add(update)
            display.tick(progress)
            if progress.step % settings.log_every == 0:
                journal.training(progress)
            if progress.step % settings.validate_every == 0:
                _validate(model, validation, progress, journal)
            if settings.saves(progress.step) or interruption.asked:
                _save(updater, checkpoints, progress, journal)
            if interruption.asked:
                raise Interrupted(_farewell(progress, folder))

        if progress.validated < progress.step:
            _validate(model, validation, progress, journal)
        if progress != checkpoints.latest:
            _save(updater, checkpoints, progress, journal)
        if interruption.asked:
            raise Interrupted(_farewell(progress, folder))
        return _keep_the_best(model, validation, checkpoints, progress, journal)


def _groups(batches: Batches, progress: Progress, settings: Training) -> Iterator[list[Batch]]:
    """The batches of each step to come, until a limit is reached or patience lost."""
    stream = _stream(batches, progress, settings.epochs)
    while progress.done(settings) < 1 and not progress.patience_lost(settings):
        group = list(islice(stream, settings.accumulate))
        if not group:
            return
        yield group


def _stream(batches: Batches, progress: Progress, epochs: int | None) -> Iterator[Batch]:
    """All batches to come, epoch after epoch; `progress` notes which ones were taken."""
    while epochs is None or progress.epoch < epochs:
        for batch in batches.epoch(progress.epoch, skip=progress.position):
            progress.position += 1
            yield batch
        if not progress.position:
            raise UserError("there is nothing to train on: an epoch has no batch")
        progress.epoch, progress.position, progress.epoch_length = progress.epoch + 1, 0, progress.position


def _validate(model: nn.Module, validation: Validation | None, progress: Progress, journal: Journal) -> None:
    if validation is None:
        return
    journal.training(progress)
    metrics = validation.run(model)
    validation.note(metrics, progress)
    journal.validation(progress, metrics)
    journal.pause()


def _save(updater: Updater, checkpoints: Checkpoints, progress: Progress, journal: Journal) -> None:
    journal.training(progress)  # what is not written yet would be lost to a resumed training
    checkpoints.save(updater.model, updater.optimizer, progress)
    journal.pause()


def _keep_the_best(
    model: nn.Module, validation: Validation | None, checkpoints: Checkpoints, progress: Progress, journal: Journal
) -> Result:
    """Load the average of the last checkpoints, or the best one if that validates better."""
    best, steps = f"step {progress.best_step}", checkpoints.last_regular()
    kept, compared = best, {best: progress.best} if progress.best else {}
    if len(steps) > 1 or not progress.best:
        average = f"the average of steps {', '.join(map(str, steps))}" if len(steps) > 1 else f"step {steps[0]}"
        bundle.fill(model, checkpoints.average(steps), str(checkpoints.folder), CHANGED)
        if validation is not None:
            compared[average] = validation.run(model)
        if validation is None or not progress.best or validation.better(compared[average], progress.best):
            kept = average
    if kept == best:
        checkpoints.fill(model, progress.best_step)
    journal.final(progress, {"kept": kept, "compared": compared})
    return Result(progress.step, kept, compared.get(kept, {}))


def _writers(folder: Path, settings: Training, progress: Progress, display: Display) -> list[Writer]:
    writers: list[Writer] = [JsonLines(folder / "metrics.jsonl", progress.step), display]
    if settings.tensorboard:
        writers.append(TensorBoard(folder / "tensorboard", progress.step))
    return writers


def _greet(console: Console, progress: Progress, damaged: list[str]) -> None:
    for line in damaged:
        console.print(f"passed over a checkpoint: {line}", markup=False, soft_wrap=True)
    if progress.step:
        console.print(f"resuming from step {progress.step:,}", markup=False, soft_wrap=True)


def _farewell(progress: Progress, folder: Path) -> str:
    return f"stopped after step {progress.step:,}; all is saved in {folder}, the same command goes on from there"
