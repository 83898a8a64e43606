"""Time and memory of a run, measured in processes of their own."""

import gc
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

GIVING_BACK = {"MALLOC_MMAP_THRESHOLD_": "8192", "MALLOC_TRIM_THRESHOLD_": "0"}
"""Tells glibc to give memory back as soon as it is freed: what a process holds is what it uses.

From two pages on: with 64 KiB the small tensors of a check leave gaps of up to 0.2 MiB, as glibc before 2.38 cannot use
a gap again for memory that is aligned.
"""

KEEPING = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)}
"""Tells glibc to keep what is freed: no pass pays for pages that another one has given back."""


def timed(run: Callable[..., Any], *arguments: Any) -> float:
    """Seconds of a run without gradients."""
    gc.collect()
    start = time.perf_counter()
    with torch.no_grad():
        run(*arguments)
    return time.perf_counter() - start


def pages() -> int:
    """KiB of all pages that this process holds."""
    return int(Path("/proc/self/smaps_rollup").read_text().split("Rss:")[1].split()[0])


def held(what: str) -> float:
    """MiB that this process holds (VmRSS), or the most that it ever held (VmHWM; getrusage adds its parent)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{what}:")[1].split()[0]) / 1024


def in_own_process(cost: Callable[..., tuple[float, float]], *arguments: Any) -> tuple[float, float]:
    """Seconds of one process, and the memory of another whose C library gives back at once what is freed."""
    (seconds, _), (_, most) = spawned({}, cost, *arguments), spawned(GIVING_BACK, cost, *arguments)
    return seconds, most


def spawned(environment: dict[str, str], run: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a process of its own, with this in its environment."""
    with process(environment) as own:
        return own.submit(run, *arguments).result()


@contextmanager
def process(environment: dict[str, str]) -> Iterator[ProcessPoolExecutor]:
    """A process of its own, with this in its environment."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as own:
        with patch.dict(os.environ, environment):
            own.submit(os.getpid).result()  # it starts with its first task
        yield own
