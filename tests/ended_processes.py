"""Processes that a test waits for."""

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path


def runs(process: int) -> bool:
    """Whether a process is there, and more than its exit status."""
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def still_running(processes: Iterable[int], seconds: float) -> list[int]:
    """Those of some processes that have not ended after this many seconds; they are killed."""
    left, deadline = list(processes), time.monotonic() + seconds
    while any(map(runs, left)) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [process for process in left if runs(process)]
    for process in left:
        os.kill(process, signal.SIGKILL)
    return left
