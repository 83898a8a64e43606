"""The display of a training: a live progress bar on a terminal, otherwise a line now and then."""

import time

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bar

from foveate.training.metrics_log import Row
from foveate.training.progress import Progress
from foveate.training.settings import Training

QUIET_SECONDS = 60
"""Seconds between two lines without a terminal. Validations are always printed."""


class Display:
    """A writer of rows that shows the latest metrics, the progress and the remaining time."""

    def __init__(
        self, console: Console, settings: Training, progress: Progress, metric: str | None, unit: str = "tokens"
    ) -> None:
        """`metric` is the one whose best value is shown; `unit` is the name of labelled items in the speed."""
        self.console, self.settings, self.metric, self.unit = console, settings, metric, unit
        self.began, self.done_before = time.monotonic(), progress.done(settings)
        self.figures = ""
        self.best = _best(metric, progress)
        self.spoke = self.began
        columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
        # The bar of a quiet console would redirect standard output and drop it.
        silent = console.quiet or not console.is_terminal
        self.bar = Bar(*columns, console=console, disable=silent, transient=True)
        self.task = self.bar.add_task("", total=1.0)

    def tick(self, progress: Progress, loss: float | None = None) -> None:
        """Show the progress after a step, until the first row with the loss so far."""
        self.bar.start()
        done = progress.done(self.settings)
        self.best = _best(self.metric, progress)
        figures = self.figures or ("" if loss is None else f"loss {loss:.3f}  ")
        text = f"step {progress.step:,}  {figures}{self.best}{self._left(done)}"
        self.bar.update(self.task, completed=done, description=text)

    def write(self, row: Row) -> None:
        if "loss" in row:
            speed = f"{row['tokens_per_second']:,.0f} {self.unit}/s"
            self.figures = f"loss {row['loss']:.3f}  {speed}  rate {row['learning_rate']:.2e}  "
            if not self.console.is_terminal and time.monotonic() - self.spoke >= QUIET_SECONDS:
                self.say(f"step {row['step']:,}  epoch {row['epoch']}  {self.figures}{self.best}")
        if "validation" in row:
            self.say(
                f"step {row['step']:,}  epoch {row['epoch']}  {self.figures}validation: {_listed(row['validation'])}"
            )
        if "final" in row:
            compared = [f"{name}: {_listed(metrics)}" for name, metrics in row["final"]["compared"].items()]
            self.say("; ".join([f"kept the weights of {row['final']['kept']}", *compared]))

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self.spoke = time.monotonic()
        self.console.print(escape(line.rstrip()), soft_wrap=True, highlight=False)

    def close(self) -> None:
        self.bar.stop()

    def _left(self, done: float) -> str:
        if done <= self.done_before:
            return ""
        seconds = (time.monotonic() - self.began) * (1 - done) / (done - self.done_before)
        return f"{duration(seconds)} left"


def duration(seconds: float) -> str:
    """Seconds as 1:02:03 or 2:03."""
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def _listed(metrics: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())


def _best(metric: str | None, progress: Progress) -> str:
    return f"best {metric} {progress.best[metric]:.4g}  " if metric in progress.best else ""
