"""The training loop."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from operator import length_hint
from pathlib import Path
from typing import Any

from rich.console import Console
from torch import nn

from foveate import run_dir
from foveate.console import plain_console
from foveate.contracts import Batch
from foveate.finite import NotFinite
from foveate.training.attention_statistics import attention_statistics
from foveate.training.batches import Batches, step_batches
from foveate.training.checkpoints import SKIPPED, Checkpoints
from foveate.training.data_size import follow_size
from foveate.training.display import Display
from foveate.training.folder_lock import lock_folder
from foveate.training.hardware import choose_device, use_threads
from foveate.training.interruption import Interrupted, Interruption
from foveate.training.metrics_log import MetricsLog
from foveate.training.objectives.objective import Objective
from foveate.training.parallel import join_process_group
from foveate.training.progress import Progress
from foveate.training.randomness import begin_random_numbers
from foveate.training.settings import Training
from foveate.training.update import Updater
from foveate.training.validation import Validation
from foveate.training.writers import Callback, writers

PACE = 10
"""The steps after which a warning tells that the time will end inside the warm-up."""


@dataclass
class Result:
    """The result of a training."""

    step: int
    kept: str
    """The weights of the model: "step 500", "the average of steps 100, 200, 300"."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Their validation metrics, if any."""


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
    unit: str = "tokens",
    begin: Callable[[], object] | None = None,
    end: Callable[[], object] | None = None,
    callbacks: Sequence[Callback] = (),
) -> Result:
    """Train `model` in place. It ends with the weights that validate best: the best checkpoint or the average.

    `folder` gets `checkpoints/` and `metrics.jsonl`. With `resume`, a training in it continues from its newest
    checkpoint. `identity` (JSON values) must then be the same as before: the model, the data. `unit` is the display's
    name of labelled items: "tokens", "texts".

    While the folder is locked, `begin` is called by the main process before the first step, and `end` by all processes
    after the last one: they write what the folder has beside checkpoints. `callbacks` are called with each row of
    `metrics.jsonl`, by the main process.

    Raises UserError for invalid settings, data or folders, if another training runs in the folder, and for a loss that
    is not finite. Raises Interrupted after Ctrl-C.
    """
    settings.check()
    folder, console = Path(folder), console or plain_console(stderr=True, soft_wrap=True)
    use_threads(settings.threads)
    processes = join_process_group(choose_device(settings.device), settings.splitting)
    with processes, lock_folder(folder, processes), Interruption(processes) as interruption, processes.watch():
        if not processes.main:
            console = plain_console(quiet=True)
        begin_random_numbers(settings.seed, processes.leader)
        updater = Updater(model, objective, settings, processes)
        checkpoints = Checkpoints(folder / run_dir.CHECKPOINTS, settings, identity or {}, processes)
        if not resume:
            processes.on_main(checkpoints.refuse)
        settings, batches, lines = follow_size(settings, batches)
        checkpoints.settings, checkpoints.batches = settings, batches
        progress, resumed = checkpoints.resume(updater.placement, updater.optimizer)
        if updater.loss_scale is not None:
            updater.loss_scale = progress.loss_scale or updater.loss_scale
        _greet(console, progress, [*resumed, *lines])
        if begin is not None:
            processes.on_main(begin)
        if settings.epochs is not None:
            progress.epoch_length = progress.epoch_length or length_hint(batches)
        display = Display(console, settings, progress, validation.metric if validation else None, unit)
        taken = writers(folder, progress.step, settings.tensorboard, callbacks, console) if processes.main else []
        with closing(MetricsLog([*taken, display] if processes.main else [], progress.window)) as metrics_log:
            run = _Run(updater, checkpoints, validation, metrics_log, display, progress, settings, batches)
            result = run.take(step_batches(batches, progress, settings), interruption)
            if end is not None:
                end()
            return result


class _Run:
    """The state of a running training."""

    def __init__(
        self,
        updater: Updater,
        checkpoints: Checkpoints,
        validation: Validation | None,
        metrics_log: MetricsLog,
        display: Display,
        progress: Progress,
        settings: Training,
        batches: Batches,
    ) -> None:
        self.updater, self.placement = updater, updater.placement
        self.processes, self.settings = updater.processes, settings
        self.checkpoints, self.validation, self.progress = checkpoints, validation, progress
        self.metrics_log, self.display = metrics_log, display
        self.began = time.monotonic() - progress.seconds
        self.passes: int = getattr(batches, "passes", 1)
        """How often each batch comes, one after the other: the training is not stopped in between."""
        self.placement.working.train()

    def take(self, steps: Iterable[tuple[float, list[Batch]]], interruption: Interruption) -> Result:
        """All steps, each a learning rate and its batches, and the choice of the best weights.

        Adds to the error about numbers that are not finite what may help, and where the training then goes on.
        """
        try:
            for rate, group in steps:
                self.step(rate, group, interruption)
            self.end(interruption)
            interruption.over()
            return self.keep_the_best()
        except NotFinite as error:
            begins = ""
            if self.processes.main:  # which reports it
                begins = f": the same command with it {self.checkpoints.note_not_finite(str(error), self.progress)}"
            raise NotFinite(f"{error}; {self.updater.advice}{begins}") from None

    def step(self, rate: float, group: list[Batch], interruption: Interruption) -> None:
        """One step, and validation, logging and saving that are due after it. Raises Interrupted if requested."""
        progress, settings = self.progress, self.settings
        update = self.updater(group, rate, progress.step + 1)
        # All processes share one clock and one decision to stop.
        seconds, asked = self.processes.greatest([time.monotonic() - self.began, interruption.asked])
        progress.advance(update.weight, seconds)
        asked = asked if progress.position % self.passes == 0 else 0
        self.metrics_log.add(update)
        self.display.tick(progress, self.metrics_log.loss)
        if progress.step == PACE and (line := self._minutes_inside_warmup()):
            self.display.say(line)
        if progress.step % settings.log_every == 0:
            self.metrics_log.training(progress)
        if progress.step % settings.validate_every == 0:
            self._validate()
            self._watch_attention(group[-1])
        if settings.saves(progress.step):
            self._save()
        elif asked:
            self._save(between_rows=True)
        if asked:
            raise self._interrupted(int(asked))

    def _minutes_inside_warmup(self) -> str | None:
        """A warning where, at the pace of the first steps, the time ends before the warm-up."""
        settings, progress = self.settings, self.progress
        if settings.minutes is None or settings.warmup is None:
            return None
        steps = int(progress.step * 60 * settings.minutes / progress.seconds)
        if steps > settings.warmup:
            return None
        about = f"{settings.minutes:g} minutes end after about {steps:,} steps"
        return f"{about}, inside the warm-up of {settings.warmup:,}: lower --warmup, or leave it out"

    def end(self, interruption: Interruption) -> None:
        """Validate and save after the last step, if not done yet."""
        if self.progress.validated < self.progress.step:
            self._validate()
        if self.progress != self.checkpoints.latest:
            self._save()
        (asked,) = self.processes.greatest([interruption.asked])
        if asked:
            raise self._interrupted(int(asked))

    def keep_the_best(self) -> Result:
        """Load the average of the last checkpoints, or the best checkpoint if it validates better.

        Both are validated again, on other data if the task has them: the best of many validations is partly best by
        chance.
        """
        kept, compared = self.processes.on_main(self._best)
        self.processes.synchronize(self.placement.model.state_dict().values())
        self.metrics_log.final(self.progress, {"kept": kept, "compared": compared})
        return Result(self.progress.step, kept, compared.get(kept, {}))

    def _best(self) -> tuple[str, dict[str, dict[str, float]]]:
        model = self.placement.model.to(self.placement.device)  # a sharded model is on the CPU
        candidates, validation = self._candidates(), self.validation
        kept, compared = next(iter(candidates)), {}
        if validation is not None:
            for name, steps in candidates.items():
                self.checkpoints.fill(model, steps)
                compared[name] = validation.run(model, in_the_end=True)
                kept = name if validation.better(compared[name], compared[kept]) else kept
        self.checkpoints.fill(model, candidates[kept])
        return kept, compared

    def _candidates(self) -> dict[str, list[int]]:
        """The steps of the average and the best step, by name; without damaged checkpoints."""
        newest, best = self.progress.step, self.progress.best_step
        last = self.checkpoints.last_regular(newest)
        damaged = self.checkpoints.damaged({*last, best or newest})
        for line in damaged.values():
            self.display.say(SKIPPED + line)
        last = [step for step in last if step not in damaged]
        best = 0 if best in damaged else best
        candidates = {f"the average of steps {', '.join(map(str, last))}": last} if len(last) > 1 else {}
        if best or not candidates:
            step = best or newest
            candidates[f"step {step}"] = [step]
        return candidates

    def _validate(self) -> None:
        validation = self.validation
        if validation is None:
            return
        self.metrics_log.training(self.progress)
        self.updater.refuse_non_finite_weights(self.progress.step)
        with self.placement.model_in_use() as model:
            metrics = self.processes.on_main(lambda: self._measure(validation, model))
        validation.note(metrics, self.progress)
        self.metrics_log.validation(self.progress, metrics)
        self.metrics_log.pause()

    def _watch_attention(self, batch: Batch) -> None:
        """Write what heads do with a batch, if that is asked for."""
        if not self.settings.watch_attention:
            return
        with self.placement.model_in_use() as model:
            found = self.processes.on_main(lambda: attention_statistics(model, batch))
        self.metrics_log.attention(self.progress, found)
        self.metrics_log.pause()

    def _measure(self, validation: Validation, model: nn.Module) -> dict[str, float]:
        try:
            return validation.run(model)
        except NotFinite:
            step = self.progress.step
            raise NotFinite(f"step {step} stopped: the model computes numbers that are not finite") from None

    def _save(self, between_rows: bool = False) -> None:
        """Write a checkpoint; its sums of a row go on after a resume, so rows are those of an unbroken training."""
        self.updater.refuse_non_finite_weights(self.progress.step)
        if not between_rows:
            self.metrics_log.training(self.progress)
        self.progress.window = dict(self.metrics_log.window)
        self.progress.loss_scale = self.updater.loss_scale
        self.checkpoints.save(self.placement, self.updater.optimizer, self.progress)
        self.metrics_log.pause()

    def _interrupted(self, number: int) -> Interrupted:
        return Interrupted(
            f"stopped after step {self.progress.step:,}; saved in {self.checkpoints.folder.parent}, "
            f"run the same command to continue",
            number,
        )


def _greet(console: Console, progress: Progress, lines: list[str]) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if progress.step:
        console.print(f"resuming from step {progress.step:,}", markup=False, soft_wrap=True)
