"""Additive attention, forward and backward: foveate's blocked kernel beside the plain formula under autograd.

The plain formula holds T x S x C numbers several times over; the blocked kernel holds one block of them. Run it with

    python benchmarks/additive.py

It needs about 7 GB of memory and a minute or two. Peak memory is measured in a process of its own for each of the two,
as growth over what the process held before; time in one process, the two by turns, so that a busy machine slows both.
Both have one thread: two would wait for each other at every operation when something else uses a core, which says more
about that than about them. Exits with status 1 when a bound does not hold.
"""

import gc
import multiprocessing
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from foveate.attention import Additive, attend

T = S = 1024
C = 512
ROUNDS = 5
LEAST_MEMORY_RATIO, LEAST_SPEED_RATIO = 20, 4


def naive(q: Tensor, k: Tensor, v: Tensor, score: Additive) -> Tensor:
    pairs = torch.tanh(score.queries(q).unsqueeze(-2) + score.keys(k).unsqueeze(-3))
    return (pairs @ score.direction).softmax(-1) @ v


def blocked(q: Tensor, k: Tensor, v: Tensor, score: Additive) -> Tensor:
    return attend(q, k, v, score, kernel="blocked")


def step(attention: Callable[..., Tensor]) -> Callable[[], None]:
    """One forward and backward pass of `attention`, on numbers that are always the same."""
    torch.manual_seed(0)
    score = Additive(C, C, C)
    q, k, v = (torch.randn(1, length, C, requires_grad=True) for length in (T, S, S))
    to_output = torch.randn(1, T, C)
    return lambda: attention(q, k, v, score).backward(to_output)


def peak_memory(attention: Callable[..., Tensor]) -> float:
    """By how many MiB a pass raises the peak of this process."""
    torch.set_num_threads(1)
    run = step(attention)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def in_own_process(attention: Callable[..., Tensor]) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(peak_memory, (attention,))


def timed(run: Callable[[], None]) -> tuple[float, float]:
    """Seconds on the clock and of the processor, of this process and its threads."""
    gc.collect()
    clock, used = time.perf_counter(), sum(os.times()[:2])
    run()
    return time.perf_counter() - clock, sum(os.times()[:2]) - used


def main() -> int:
    torch.set_num_threads(1)
    memory = {attention.__name__: in_own_process(attention) for attention in (naive, blocked)}
    runs = {attention.__name__: step(attention) for attention in (naive, blocked)}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for _ in range(ROUNDS + 1):
        for name, run in runs.items():
            times[name].append(timed(run))
    seconds, processor = ({n: statistics.median(t[part] for t in times[n][1:]) for n in runs} for part in (0, 1))
    print(f"additive attention, forward and backward, B=1, T={T}, S={S}, C={C}, one thread")
    for name in runs:
        print(f"{name:8}  {memory[name]:8.0f} MiB  {seconds[name]:7.3f} s  {processor[name]:7.3f} s of processor")
    memory_ratio = memory["naive"] / memory["blocked"]
    speed_ratio = seconds["naive"] / seconds["blocked"]
    print(f"memory: 1/{memory_ratio:.0f} of the naive (bound: 1/{LEAST_MEMORY_RATIO})")
    print(f"speed: {speed_ratio:.1f} times the naive (bound: {LEAST_SPEED_RATIO})")
    return 0 if memory_ratio >= LEAST_MEMORY_RATIO and speed_ratio >= LEAST_SPEED_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
