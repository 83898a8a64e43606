"""`foveate bench parallel`, without its trainings: what is started, and what is sent."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from foveate.errors import UserError
from foveate.experiments import compare, parallel
from foveate.experiments.parallel import WAYS, Parallel, megabytes


def test_what_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess:
        commands.append(command)
        folder = Path(command[command.index("--out") + 1])
        folder.mkdir(parents=True)
        speeds = [10.0, 100.0 * len(commands)]
        lines = [json.dumps({"tokens_per_second": speed}) for speed in speeds]
        (folder / "metrics.jsonl").write_text("\n".join(lines), encoding="utf-8")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(parallel.subprocess, "run", run)
    found = compare("parallel", Parallel(out=tmp_path, widths=(8,), batch_tokens=(64,)), Console(quiet=True))
    assert [command[command.index("--parallel") + 1] for command in commands] == [*WAYS.values()]
    assert [command[command.index("--processes") + 1] for command in commands] == ["1", "2", "2", "2"]
    assert [row[4] for row in found.tables[0].rows] == ["1.00", "2.00", "3.00", "4.00"]


def test_a_training_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 2, "", "one\nno such text\n")
    monkeypatch.setattr(parallel.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(UserError, match="the training of one process failed: no such text"):
        compare("parallel", Parallel(out=tmp_path), Console(quiet=True))


def test_what_is_sent() -> None:
    assert megabytes("one process", 2, 8, 64) == 0
    assert megabytes("data parallel", 2, 8, 64) == megabytes("data parallel", 2, 8, 4096)
    assert megabytes("sharded", 2, 8, 64) == pytest.approx(1.5 * megabytes("data parallel", 2, 8, 64))
    assert megabytes("model parallel", 2, 8, 128) == 2 * megabytes("model parallel", 2, 8, 64)
    assert megabytes("model parallel", 2, 8, 64) == pytest.approx(4 * 0.5 * 4 * 10 * 64 * 8 / 1e6)
