"""Measurements of time and memory, and exponents of growth."""

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

from foveate.accelerator import accelerator_type

SHORTEST = 0.01
"""Faster runs are repeated until they take this many seconds, because of the resolution of the clock."""

Run = Callable[[], Any]

Case = TypeVar("Case", bound=Hashable)


def side_by_side(runs: Mapping[Case, Run], repeats: int = 5) -> dict[Case, float]:
    """The seconds of each run: the median of `repeats` interleaved measurements.

    Interleaving distributes the effect of other programs. A first warm-up run is not counted. With one thread, times
    are CPU times, otherwise, and on another default device, wall-clock times."""
    on_cpu = torch.get_default_device().type == "cpu"
    clock = time.process_time if on_cpu and torch.get_num_threads() == 1 else time.perf_counter
    times: dict[Case, list[float]] = {name: [] for name in runs}
    counts = {name: _count(run, clock) for name, run in runs.items()}
    gc.disable()  # as timeit does: garbage collection would disturb single runs
    try:
        for _ in range(repeats):
            for name, run in runs.items():
                times[name].append(_seconds(run, counts[name], clock) / counts[name])
    finally:
        gc.enable()
    return {name: statistics.median(measured) for name, measured in times.items()}


def _count(run: Run, clock: Callable[[], float]) -> int:
    """The number of repetitions that take long enough to be measured."""
    run()
    seconds = _seconds(run, 1, clock)
    return max(1, math.ceil(SHORTEST / max(seconds, 1e-6)))


def _seconds(run: Run, count: int, clock: Callable[[], float]) -> float:
    _wait()
    start = clock()
    for _ in range(count):
        run()
    _wait()
    return clock() - start


def _wait() -> None:
    """Wait until the default device, if it is a GPU, has finished."""
    if _on_accelerator():
        torch.accelerator.synchronize()


def _on_accelerator() -> bool:
    """Whether tensors are made on a GPU that torch knows."""
    return torch.get_default_device().type == accelerator_type()


def memory(prepare: Callable[..., Run], *arguments: Any) -> float | None:
    """The bytes that the run made by `prepare(*arguments)` adds to the memory of a process; None if unknown.

    It runs in a new process. `prepare` must be a function of a module and the arguments plain values, because they are
    sent there. Only Linux reports the peak memory of a process.
    """
    if torch.get_default_device().type != "cpu":
        return _memory_of_device(prepare(*arguments))
    if not Path("/proc/self/status").exists():
        return None
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, prepare.__module__])
    before = os.environ.get(_TUNABLE)
    # Read when the process starts: returns freed memory to the system at once.
    os.environ[_TUNABLE] = "65536"
    try:
        with context.Pool(1) as pool:
            return pool.apply(_growth, (prepare, arguments))
    finally:
        os.environ.pop(_TUNABLE) if before is None else os.environ.update({_TUNABLE: before})


def _memory_of_device(run: Run) -> float | None:
    """The bytes that a run adds on the default device; None if torch does not count them."""
    if not _on_accelerator():
        return None
    run()
    before = torch.accelerator.memory_allocated()
    torch.accelerator.reset_peak_memory_stats()
    run()
    return float(torch.accelerator.max_memory_allocated() - before)


_TUNABLE = "MALLOC_MMAP_THRESHOLD_"


def _growth(prepare: Callable[..., Run], arguments: Sequence[Any]) -> float:
    torch.set_num_threads(1)
    run = prepare(*arguments)
    run()  # loads code and other one-time memory
    gc.collect()
    with contextlib.suppress(OSError):  # without support, one-time memory is counted too
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    before = _memory_of_process("VmRSS")
    run()
    return max(0.0, _memory_of_process("VmHWM") - before)


def _memory_of_process(what: str) -> float:
    """Bytes of memory of this process, now (VmRSS) or at the peak (VmHWM)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024.0 * int(status.split(f"{what}:")[1].split()[0])


def exponent(sizes: Sequence[float], measured: Sequence[float]) -> float:
    """The exponent by which a measure grows with size: least squares of logarithms."""
    x, y = torch.tensor(sizes, dtype=torch.float64).log(), torch.tensor(measured, dtype=torch.float64).log()
    x, y = x - x.mean(), y - y.mean()
    return float((x @ y) / (x @ x))
