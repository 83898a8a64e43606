"""Workers in processes of their own, timed in turn, so that a busy machine slows all of them alike."""

import json
import os
import statistics
import subprocess
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

WORKERS = Path(__file__).parent / "workers"

CTRANSLATE2 = {"float32": "float32", "bfloat16": "int8", "int8": "int8"}
"""What CTranslate2 computes in beside each precision of foveate: with fewer than 32 bits, in its fastest."""

TRANSFORMERS = {"float32": "float32", "bfloat16": "bfloat16", "int8": "float32"}
"""Likewise transformers, which has no 8 bits for a CPU without a further library."""


class Worker:
    """A script under `workers/` that runs in a given Python and does its job whenever it is told to."""

    def __init__(self, name: str, python: Path | str, script: str, *arguments: Path | str | int) -> None:
        self.name = name
        command = [str(python), "-W", "ignore", str(WORKERS / script), *map(str, arguments)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
        )
        self.answers: list[dict[str, Any]] = []
        self._read()

    def go(self) -> None:
        assert self._process.stdin is not None
        print(file=self._process.stdin, flush=True)
        self.answers.append(self._read())

    def close(self) -> None:
        self._process.communicate()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} stopped with status {self._process.wait()}; its message is above")
        return json.loads(line)


def environment() -> dict[str, str]:
    """Each toolkit decides for itself how its threads wait: what foveate chose for this process is taken out again."""
    chosen = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    inherited = {name: value for name, value in os.environ.items() if name not in chosen}
    return {**inherited, "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}


def measure(workers: list[Worker], rounds: int) -> None:
    """Let all do their job by turns; the answers of the first round, in which they warm up, are dropped."""
    for _ in range(rounds + 1):
        for worker in workers:
            worker.go()
    for worker in workers:
        del worker.answers[0]
        worker.close()


def ratio(ours: list[float], others: list[float]) -> float:
    """How many times as long the other one takes: the median over the rounds."""
    return statistics.median(other / own for own, other in zip(ours, others, strict=True))


def show(title: str, headings: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, title_justify="left")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
