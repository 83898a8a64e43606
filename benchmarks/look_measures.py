"""What the measures of one attention call cost, beside that call: GPT-2's shape at 4,096 tokens, and 32,768 tokens.

    python benchmarks/look_measures.py

It needs 2 GB of memory and two minutes on 2 cores. At 4,096 tokens all is timed in one process, by turns, so that a
busy machine slows all alike; the unit is torch's fused causal attention, forward. The long texts run in a process of
their own, whose peak memory is measured as growth over what queries and keys hold. Exits with status 1 when a bound
does not hold.
"""

import gc
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import foveate  # noqa: F401, isort: skip, before torch: its threads shall sleep, not spin, while others work

import torch
from torch import Tensor

from foveate.attention import ScaledDot, Soft, causal
from foveate.attention.call import Call
from foveate.sight.measures import Distance, Entropy, Max, Measure, Pooled, Received, TopKeys, measure, weights

HEADS, WIDTH = 12, 64
TOKENS = 4096
LONG, LAYERS = 32_768, 2
ROUNDS = 5
FEW = [0, 1, 7, 63, 511, 512, 1023, 1500, 2047, 2048, 2500, 3000, 3333, 4000, 4094, 4095]

BOUNDS = {"received": 1.25, "received, entropy, top 8": 2.8}
"""At most so many times as long as the attention itself."""

LARGEST_ERROR = 1e-5
"""Of `received` against double precision, relative."""


def draw(tokens: int) -> Call:
    """A causal call with random queries and keys."""
    q, k = torch.randn(2, 1, HEADS, tokens, WIDTH)
    return Call(q, k, k[..., :0], ScaledDot(), causal(), None, Soft(), dropout=0.0, full=False)


def fused(call: Call) -> Any:
    """The attention of a forward pass, with values like the keys."""
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(call.queries, call.keys, call.keys, 0.0, True)


def taking(*kinds: Callable[[], Measure]) -> Callable[[Call], Any]:
    return lambda call: measure(call, [kind() for kind in kinds])


RUNS: dict[str, Callable[[Call], Any]] = {
    "attention": fused,
    "received": taking(Received),
    "entropy": taking(Entropy),
    "top 8": taking(TopKeys),
    "max": taking(Max),
    "distance": taking(Distance),
    "pooled": taking(Pooled),
    "received, entropy, top 8": taking(Received, Entropy, TopKeys),
    "16 rows": lambda call: weights(call, queries=FEW),
}


def seconds(run: Callable[[Call], Any], call: Call) -> float:
    gc.collect()
    start = time.perf_counter()
    run(call)
    return time.perf_counter() - start


def error(call: Call) -> float:
    """The largest relative error of what keys received, head by head against double precision."""
    (found,), largest = measure(call, [Received()]), 0.0
    ahead = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
    for head in range(HEADS):
        scores = call.queries[0, head].double() @ call.keys[0, head].double().mT / WIDTH**0.5
        exact: Tensor = scores.masked_fill_(ahead, -torch.inf).softmax(-1).sum(-2)
        largest = max(largest, float(((found[0, head] - exact) / exact).abs().max()))
    return largest


def long_texts() -> tuple[float, float]:
    """Seconds for the pooled maps of some layers of a long text, and MiB by which they raise this process's peak."""
    calls = [draw(LONG) for _ in range(LAYERS)]
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    for call in calls:
        (found,) = measure(call, [Pooled(64, 64)])
        torch.testing.assert_close(found.sum(-1), torch.ones(1, HEADS, 64))
    return time.perf_counter() - start, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> int:
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # first: its peak begins where this process' now is
        duration, memory = pool.apply(long_texts)
    torch.manual_seed(0)
    call, times = draw(TOKENS), {name: [] for name in RUNS}
    for _ in range(ROUNDS + 1):
        for name, run in RUNS.items():
            times[name].append(seconds(run, call))
    ratios = {
        name: statistics.median(t / a for t, a in zip(times[name][1:], times["attention"][1:], strict=True))
        for name in RUNS
    }
    print(f"one layer of {HEADS} heads, {TOKENS:,} tokens, causal, {torch.get_num_threads()} threads")
    for name, ratio in ratios.items():
        bound = f"  (bound: {BOUNDS[name]})" if name in BOUNDS else ""
        print(f"{name:25} {statistics.median(times[name][1:]):7.3f} s  {ratio:6.2f} times the attention{bound}")
    off = error(call)
    print(f"received, largest relative error: {off:.1e} (bound: {LARGEST_ERROR:.0e})")
    print(f"pooled(64, 64) of {LAYERS} layers, {LONG:,} tokens: {duration:.0f} s, {memory:,.0f} MiB")
    return 0 if off <= LARGEST_ERROR and all(ratios[name] <= bound for name, bound in BOUNDS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
