"""Rows of metrics.jsonl, TensorBoard, and what is shown."""

import builtins
import json
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from foveate.errors import UserError
from foveate.training import Training
from foveate.training import display as displays
from foveate.training.display import Display, duration
from foveate.training.metrics_log import MetricsLog
from foveate.training.progress import Progress
from foveate.training.update import Update
from foveate.training.writers import JsonLines, TensorBoard, writers

ROW = {"step": 7, "epoch": 2, "loss": 1.25, "tokens_per_second": 12345.6, "learning_rate": 0.001}


class Listed:
    """A writer that keeps the rows."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    def close(self) -> None:
        self.rows.append({"closed": True})


def test_a_row_sums_tokens_not_steps():
    listed = Listed()
    journal = MetricsLog([listed])
    journal.add(Update(2, {"loss": 8.0}, 1.0, 0.3))
    journal.add(Update(6, {"loss": 4.0}, 5.0, 0.2))
    journal.training(Progress(step=2, position=2, tokens=8))
    journal.training(Progress(step=2))
    journal.close()
    row, closed = listed.rows
    assert closed == {"closed": True}
    assert row["loss"] == 1.5
    assert row["gradient_norm"] == 3.0
    assert row["learning_rate"] == 0.2
    assert row["tokens"] == 8
    assert row["tokens_per_second"] > 0


def test_rows_after_the_checkpoint_and_halves_of_rows_are_taken_out(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    lines = ['{"step": 3}', '{"step": 6}', '{"step": 6, "final": {}}', '{"step": 9}', '{"step": 1', "4", ""]
    path.write_text("\n".join(lines), encoding="utf-8")
    writer = JsonLines(path, 6)
    writer.write({"step": 7})
    writer.close()
    assert [json.loads(line)["step"] for line in path.read_text(encoding="utf-8").splitlines()] == [3, 6, 7]


def test_a_damaged_file_keeps_the_rows_that_are_whole(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 3}\n\xff\xfe\n{"step": 5}\n')
    JsonLines(path, 6)
    assert path.read_text(encoding="utf-8") == '{"step": 3}\n{"step": 5}\n'
    path.unlink()
    path.mkdir()
    with pytest.raises(UserError, match=r"^could not read .*metrics.jsonl: it is a folder; remove it to continue$"):
        JsonLines(path, 6)


def test_no_space_left(tmp_path: Path, full_disk: Callable[[int], Any]):
    writer = JsonLines(tmp_path / "metrics.jsonl", 0)
    message = r"could not write .*metrics.jsonl: File too large; the checkpoints are intact"
    with pytest.raises(UserError, match=message), full_disk(5):
        writer.write(ROW)


def test_tensorboard_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plain = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("torch.utils.tensorboard"):
            raise ModuleNotFoundError(name)
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"^TensorBoard is not installed: pip install tensorboard$"):
        TensorBoard(tmp_path, 0)


def test_tensorboard_gets_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    scalars: list[tuple[str, float, int]] = []

    class SummaryWriter:
        def __init__(self, folder: str, purge_step: int) -> None:
            assert (folder, purge_step) == (str(tmp_path), 8)

        def add_scalar(self, name: str, value: float, step: int) -> None:
            scalars.append((name, value, step))

        def close(self) -> None:
            scalars.append(("closed", 0.0, 0))

    module = type(sys)("torch.utils.tensorboard")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    writer = TensorBoard(tmp_path, 7)
    writer.write({"step": 9, "epoch": 2, "loss": 1.5})
    writer.write({"step": 9, "validation": {"bleu": 31.0}})
    writer.close()
    assert scalars == [("training/loss", 1.5, 9), ("validation/bleu", 31.0, 9), ("closed", 0.0, 0)]


def test_a_callback_gets_the_rows_of_the_file(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    found = writers(tmp_path, 0, False, [rows.append], Console(file=StringIO()))
    for row in (ROW, {"step": 9, "validation": {"bleu": 31.0}}):
        for writer in found:
            writer.write(row)
    assert rows == [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]


def test_a_callback_that_fails_is_told_once_and_the_others_go_on(tmp_path: Path) -> None:
    calls, rows = [], []

    def fails(row: dict[str, Any]) -> None:
        calls.append(row["step"])
        row.clear()  # others get rows of their own
        raise ConnectionError("no tracker\nis here")

    told = StringIO()
    found = writers(tmp_path, 0, False, [fails, rows.append], Console(file=told, width=200))
    for step in (3, 4):
        for writer in found:
            writer.write({"step": step})
    assert calls == [3]
    assert rows == [{"step": 3}, {"step": 4}]
    (line,) = told.getvalue().splitlines()
    assert line.endswith("fails failed at step 3 and is not called again: ConnectionError: no tracker")


def test_a_callback_stops_nothing_but_an_interruption(tmp_path: Path) -> None:
    def stop(row: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    *_, called = writers(tmp_path, 0, False, [stop], Console(file=StringIO()))
    with pytest.raises(KeyboardInterrupt):
        called.write(ROW)


def shown(terminal: bool, seconds_between: float = 0.0) -> str:
    console = Console(file=StringIO(), force_terminal=terminal, width=200, color_system=None)
    progress = Progress(step=6, best={"bleu": 21.5})
    display = Display(console, Training(steps=100), progress, "bleu")
    display.spoke -= seconds_between
    progress.advance(11, 1.0)
    display.write(ROW)
    display.tick(progress)
    display.write({"step": 7, "epoch": 2, "validation": {"bleu": 21.537, "loss": 1.5}})
    display.write(
        {"step": 7, "final": {"kept": "step 5", "compared": {"step 5": {"bleu": 3}, "step 7": {"bleu": 2.5}}}}
    )
    display.close()
    return console.file.getvalue()


def test_a_terminal_gets_a_bar():
    text = shown(terminal=True)
    assert "7%" in text
    assert "step 7  loss 1.250  12,346 tokens/s  rate 1.00e-03  best bleu 21.5  0:0" in text
    assert "left" in text


def test_the_bar_has_a_loss_from_the_first_step() -> None:
    """The mean of what came since the last row; a row's own figures once there is one."""
    console = Console(file=StringIO(), force_terminal=True, width=200, color_system=None)
    display = Display(console, Training(steps=100), Progress(), None)
    metrics_log = MetricsLog([display])
    assert metrics_log.loss is None
    for step, loss in enumerate((6.0, 9.0), 1):
        metrics_log.add(Update(weight=2, learning_rate=1e-3, gradient_norm=1.0, sums={"loss": loss}))
        display.tick(Progress(step=step), metrics_log.loss)
        assert display.bar.tasks[0].description.startswith(f"step {step}  loss {(3.0, 3.75)[step - 1]:.3f}  ")
    metrics_log.training(Progress(step=2))
    assert metrics_log.loss is None
    display.tick(Progress(step=3), 1.0)
    assert display.bar.tasks[0].description.startswith("step 3  loss 3.750  ")
    display.close()


def test_who_is_quiet_takes_over_nothing_that_is_printed():
    before = sys.stdout, sys.stderr
    display = Display(Console(quiet=True, force_terminal=True), Training(steps=100), Progress(), None)
    display.tick(Progress(step=1))
    during = sys.stdout, sys.stderr
    display.close()
    assert during == before


def test_elsewhere_a_validation_gets_a_plain_line():
    line = "step 7  epoch 2  loss 1.250  12,346 tokens/s  rate 1.00e-03  "
    end = "kept the weights of step 5; step 5: bleu 3; step 7: bleu 2.5\n"
    assert shown(terminal=False) == f"{line}validation: bleu 21.54  loss 1.5\n{end}"
    assert shown(terminal=False, seconds_between=displays.QUIET_SECONDS).startswith(f"{line}best bleu 21.5\n{line}val")


def test_what_is_counted_has_its_name():
    console = Console(file=StringIO(), width=200)
    display = Display(console, Training(steps=100), Progress(step=6), "accuracy", "texts")
    display.write(ROW)
    display.write({"step": 7, "epoch": 2, "validation": {"accuracy": 21.5}})
    assert "12,346 texts/s" in console.file.getvalue()


def test_durations():
    assert [duration(seconds) for seconds in (0.4, 59.6, 61, 3723)] == ["0:00", "1:00", "1:01", "1:02:03"]
