"""Examining one family after the other in processes of their own, so that no crash ends the run."""

import contextlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from families.outcome import Outcome

WORKERS = 2
CPU_SECONDS = 90
"""What a family may take; no more than this many times that on the clock, if the machine is busy."""
BUSY = 5
MEMORY = 8 * 2**30

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "critical"}


class TooLongError(BaseException):
    """A family took more than its time; no `except Exception` shall stop it."""


def work(library: str) -> None:
    """Answer each name of a family on the standard input with a line of JSON on the standard output."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # models print
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    from families import libraries

    examine = libraries.of(library).examine
    signal.signal(signal.SIGPROF, _too_long)
    for line in sys.stdin:
        family = line.strip()
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        try:
            outcome = examine(family)
        except TooLongError:
            outcome = Outcome(family, "not run", f"it takes more than {CPU_SECONDS} s")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(asdict(outcome)), file=answers, flush=True)


def _too_long(*_: Any) -> None:
    raise TooLongError


def outcomes(library: str, families: list[str]) -> Iterator[Outcome]:
    """What came of each family, in the order in which they are done."""
    waiting = families[::-1]
    workers = [_Worker(library, waiting.pop()) for _ in range(min(WORKERS, len(families)))]
    try:
        while workers:
            select.select([worker.answers for worker in workers], [], [], 1)
            for worker in list(workers):
                outcome = worker.outcome()
                if outcome is not None:
                    yield outcome
                    if waiting:
                        worker.give(waiting.pop())
                    else:
                        workers.remove(worker)
                        worker.stop()
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """One process, started anew when it has died."""

    def __init__(self, library: str, family: str) -> None:
        self.library, self.process = library, None
        self.give(family)

    def give(self, family: str) -> None:
        if self.process is None:
            script = str(Path(__file__).parents[1] / "look_families.py")
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", script, "--worker", self.library],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **ENVIRONMENT},
                text=True,
            )
            self.answers = self.process.stdout
        self.family, self.since = family, time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # it has just died, which `outcome` will find
            print(family, file=self.process.stdin, flush=True)

    def outcome(self) -> Outcome | None:
        """What came of the family, None if it is still under way."""
        if select.select([self.answers], [], [], 0)[0]:
            line = self.answers.readline()
            if line:
                return Outcome(**json.loads(line))
            reason = "the process died"
        elif time.monotonic() - self.since > BUSY * CPU_SECONDS:
            reason = f"it takes more than {BUSY * CPU_SECONDS} s"
        else:
            return None
        self.stop()
        return Outcome(self.family, "not run", reason)

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.process = None
