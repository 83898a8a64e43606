"""Returns the writers of the rows of a training: `metrics.jsonl`, TensorBoard, and functions of a user's own."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rich.console import Console

from foveate.errors import MOST, UserError, printable
from foveate.files import parse_json, strict_json, written
from foveate.limits import check_file
from foveate.training.folder_lock import METRICS

Row = dict[str, Any]

LARGEST = 2**28
"""Bytes of a file of metrics that is read."""

Callback = Callable[[Row], object]
"""A function of a user's own that is called with each row of `metrics.jsonl`, by the main process."""


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
            try:
                kept = [line for line in _lines(path) if _is_before(line, step)]
            except UserError as error:
                raise UserError(f"{error}; remove it to continue") from None
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
        for site, measures in row.get("attention", {}).items():
            for name, heads in measures.items():
                for head, value in enumerate(heads):
                    self.writer.add_scalar(f"attention/{site}/{name}/{head}", value, row["step"])
        for name, value in row.items():
            if isinstance(value, float):
                self.writer.add_scalar(f"training/{name}", value, row["step"])

    def close(self) -> None:
        self.writer.close()


class Called:
    """Calls a function with each row. If it fails, this is reported once, and the training goes on without it."""

    def __init__(self, function: Callback, console: Console) -> None:
        self.function, self.console = function, console
        self.failed = False

    def write(self, row: Row) -> None:
        if self.failed:
            return
        try:
            self.function(dict(row))
        except Exception as error:  # whatever it raises: hours of training are worth more
            self.failed = True
            name = getattr(self.function, "__qualname__", type(self.function).__name__)
            reason = printable(f"{type(error).__name__}: {error}".split("\n")[0])
            self.console.print(
                f"the callback {name} failed at step {row['step']:,} and is not called again: {reason}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )

    def close(self) -> None:
        """The row with "final" was the last one."""


def writers(
    folder: Path, step: int, tensorboard: bool, callbacks: Sequence[Callback], console: Console
) -> list[Writer]:
    """Returns the writers of the rows of a training in a folder, which goes on after `step`."""
    found: list[Writer] = [JsonLines(folder / METRICS, step)]
    if tensorboard:
        found.append(TensorBoard(folder / "tensorboard", step))
    return [*found, *(Called(function, console) for function in callbacks)]


def read_rows(path: Path) -> list[Row]:
    """The rows of a file of metrics that are whole: each has a step; others, such as the last one of a process that was
    killed, are left out. Raises UserError for a file that cannot be read."""
    return [row for line in _lines(path) if (row := _row(line)) is not None]


def _row(line: str) -> Row | None:
    try:
        row = parse_json(line, METRICS, strict=False)
    except UserError:
        return None
    step = row.get("step") if isinstance(row, dict) else None
    return row if type(step) is int and 0 <= step < MOST else None


def _lines(path: Path) -> list[str]:
    """The lines of a file, which may be damaged."""
    check_file(path, LARGEST)
    try:
        return path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise UserError(f"could not read {path}: {error.strerror}") from None


def _is_before(line: str, step: int) -> bool:
    row = _row(line)
    return row is not None and row["step"] <= step and "final" not in row
