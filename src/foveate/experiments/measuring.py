"""How long things take beside each other, how much memory each takes, and by what power a measure grows."""

import contextlib
import gc
import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch

SHORTEST = 0.01
"""What is quicker than so many seconds is done several times in a row, so that the clock's steps do not count."""

Run = Callable[[], Any]

Case = TypeVar("Case", bound=Hashable)


def side_by_side(runs: Mapping[Case, Run], repeats: int = 5) -> dict[Case, float]:
    """The seconds of each run: the median of so many repeats, in which all take turns.

    A machine that gets busy slows them all alike. The first turn of each, in which memory and caches are filled, does
    not count. With one thread these are seconds of the processor, else of the clock.
    """
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times: dict[Case, list[float]] = {name: [] for name in runs}
    counts = {name: _count(run, clock) for name, run in runs.items()}
    gc.disable()  # as timeit does: a collection would be counted to whichever run it falls into
    try:
        for _ in range(repeats):
            for name, run in runs.items():
                times[name].append(_seconds(run, counts[name], clock) / counts[name])
    finally:
        gc.enable()
    return {name: statistics.median(measured) for name, measured in times.items()}


def _count(run: Run, clock: Callable[[], float]) -> int:
    """How often a run has to be repeated to last long enough to be measured."""
    run()
    seconds = _seconds(run, 1, clock)
    return max(1, math.ceil(SHORTEST / max(seconds, 1e-6)))


def _seconds(run: Run, count: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(count):
        run()
    return clock() - start


def memory(prepare: Callable[..., Run], *arguments: Any) -> float | None:
    """By how many bytes the run that `prepare(*arguments)` gives raises the memory of a process; None if unknown.

    The process is fresh and its own. `prepare` is a function of a module and the arguments are plain values, because
    they are sent there. Only Linux tells how much a process ever held.
    """
    if not Path("/proc/self/status").exists():
        return None
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, prepare.__module__])
    before = os.environ.get(_TUNABLE)
    # Read when the first such process starts: memory that is freed goes back to the system at once.
    os.environ[_TUNABLE] = "65536"
    try:
        with context.Pool(1) as pool:
            return pool.apply(_growth, (prepare, arguments))
    finally:
        os.environ.pop(_TUNABLE) if before is None else os.environ.update({_TUNABLE: before})


_TUNABLE = "MALLOC_MMAP_THRESHOLD_"


def _growth(prepare: Callable[..., Run], arguments: Sequence[Any]) -> float:
    torch.set_num_threads(1)
    run = prepare(*arguments)
    run()  # brings in what is needed only once, such as code
    gc.collect()
    with contextlib.suppress(OSError):  # a kernel that cannot forget the peak counts what is needed once
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    before = _held("VmRSS")
    run()
    return max(0.0, _held("VmHWM") - before)


def _held(what: str) -> float:
    """Bytes that this process holds now (VmRSS) or ever held (VmHWM)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024.0 * int(status.split(f"{what}:")[1].split()[0])


def exponent(sizes: Sequence[float], measured: Sequence[float]) -> float:
    """The power of the size by which a measure grows: least squares in logarithms."""
    x, y = torch.tensor(sizes, dtype=torch.float64).log(), torch.tensor(measured, dtype=torch.float64).log()
    x, y = x - x.mean(), y - y.mean()
    return float((x @ y) / (x @ x))
