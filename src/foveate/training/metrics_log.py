"""The metrics of a training: steps are summed into rows, which writers take.

A row is {"step", "epoch", "seconds", "tokens", "loss", "cross_entropy", "accuracy", "tokens_per_second",
"learning_rate", "gradient_norm"}, or {"step", "epoch", "seconds", "validation": {...}} after a validation, and the same
with "attention" where that is watched; the last one is {"step", "epoch", "seconds", "final": {...}}. Losses are per
target token, epochs count from 1.
"""

import time
from collections.abc import Sequence

from foveate.training.progress import Progress
from foveate.training.update import Update
from foveate.training.writers import Row, Writer

STEPS, WEIGHT, NORM, RATE, SUM = "steps", "weight", "gradient_norm", "learning_rate", "sum."
"""What the names of the sums of a row are or begin with."""


class MetricsLog:
    """Sums steps into rows and passes them to its writers."""

    def __init__(self, writers: Sequence[Writer], window: dict[str, float] | None = None) -> None:
        """`window` holds the sums of a row that a training had begun when it was stopped."""
        self.writers = writers
        self._begin(window or {})

    def add(self, update: Update) -> None:
        """Add one step to the next row."""
        window = self.window
        values = {STEPS: 1, WEIGHT: update.weight, NORM: update.gradient_norm}
        for name, value in {**values, **{SUM + name: value for name, value in update.sums.items()}}.items():
            window[name] = window.get(name, 0) + value
        window[RATE] = update.learning_rate
        self._timed += update.weight

    @property
    def loss(self) -> float | None:
        """The mean loss since the last row; None where no step reported one."""
        total = self.window.get(f"{SUM}loss")
        return total / self.window[WEIGHT] if total is not None and self.window[WEIGHT] else None

    def pause(self) -> None:
        """Restart the clock of the next row, after something else than training."""
        self._since, self._timed = time.perf_counter(), 0

    def training(self, progress: Progress) -> None:
        """Write a row for the steps since the last one, if any."""
        window = self.window
        if not window:
            return
        sums = {name.removeprefix(SUM): value for name, value in window.items() if name.startswith(SUM)}
        row = {name: total / window[WEIGHT] for name, total in sums.items()}
        row["tokens_per_second"] = self._timed / (time.perf_counter() - self._since)
        row["learning_rate"] = window[RATE]
        row["gradient_norm"] = window[NORM] / window[STEPS]
        self._write(progress, {"tokens": progress.tokens, **row})
        self._begin({})

    def validation(self, progress: Progress, metrics: dict[str, float]) -> None:
        self._write(progress, {"validation": metrics})

    def attention(self, progress: Progress, statistics: Row) -> None:
        self._write(progress, {"attention": statistics})

    def final(self, progress: Progress, values: Row) -> None:
        self._write(progress, {"final": values})

    def close(self) -> None:
        for writer in self.writers:
            writer.close()

    def _begin(self, window: dict[str, float]) -> None:
        self.window = dict(window)
        """The sums since the last row; empty where there was no step."""
        self.pause()

    def _write(self, progress: Progress, values: Row) -> None:
        epoch = progress.epoch + (progress.position > 0)
        row = {"step": progress.step, "epoch": epoch, "seconds": round(progress.seconds, 3), **values}
        for writer in self.writers:
            writer.write(row)
