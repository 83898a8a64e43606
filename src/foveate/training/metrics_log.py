"""The metrics of a training: `metrics.jsonl`, one JSON object a row, and other writers of rows.

A row is {"step", "epoch", "seconds", "tokens", "loss", "cross_entropy", "accuracy", "tokens_per_second",
"learning_rate", "gradient_norm"}, or {"step", "epoch", "seconds", "validation": {...}} after a validation; the last
one is {"step", "epoch", "seconds", "final": {...}}. Losses are per target token, epochs count from 1.
"""

import json
import time
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from foveate.errors import UserError
from foveate.files import strict_json, written
from foveate.training.settings import Progress
from foveate.training.update import Update

Row = dict[str, Any]

STEPS, WEIGHT, NORM, RATE, SUM = "steps", "weight", "gradient_norm", "learning_rate", "sum."
"""What the names of the sums of a row are or begin with."""


@runtime_checkable
class Writer(Protocol):
    """Writes the rows of a training."""

    def write(self, row: Row) -> None: ...

    def close(self) -> None: ...


class JsonLines:
    """Appends rows to a file. It first removes rows after `step`, which a resumed training writes again."""

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        if path.exists():
            kept = [line for line in _lines(path) if _is_before(line, step)]
            with written(path) as temporary:
                temporary.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")

    def write(self, row: Row) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(strict_json(row) + "\n")
        except OSError as error:
            raise UserError(f"could not write {self.path}: {error.strerror}; the checkpoints are intact") from None

    def close(self) -> None:
        """The file is closed after each row."""


class TensorBoard:
    """Writes rows for TensorBoard. Raises UserError if it is not installed."""

    def __init__(self, folder: Path, step: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UserError("TensorBoard is not installed: pip install tensorboard") from None
        self.writer = SummaryWriter(str(folder), purge_step=step + 1)

    def write(self, row: Row) -> None:
        for name, value in row.get("validation", {}).items():
            self.writer.add_scalar(f"validation/{name}", value, row["step"])
        for name, value in row.items():
            if isinstance(value, float):
                self.writer.add_scalar(f"training/{name}", value, row["step"])

    def close(self) -> None:
        self.writer.close()


class MetricsLog:
    """Sums steps into rows and passes them to its writers."""

    def __init__(self, writers: list[Writer], window: dict[str, float] | None = None) -> None:
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


def _lines(path: Path) -> list[str]:
    """The lines of a file, which may be damaged."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; remove it to continue") from None


def _is_before(line: str, step: int) -> bool:
    try:
        row = json.loads(line)
        return row["step"] <= step and "final" not in row
    except (ValueError, TypeError, KeyError):  # an incomplete line of a killed process
        return False
