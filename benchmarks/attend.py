"""What a plain `attend` costs beside torch's own scaled_dot_product_attention, which it calls: the choice of a kernel.

    python benchmarks/attend.py

The two take turns in one process, one thread, so that a busy machine slows both; each pair gives a ratio, and the
median of the ratios counts. Takes half a minute. Exits with status 1 when the bound does not hold.
"""

import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from foveate.attention import attend, causal

CASES = {"whole": (4, 8, 512, 64), "long": (1, 8, 2048, 64), "causal": (4, 8, 512, 64)}
"""Batch, heads, places and width of a head."""

PAIRS = 15
MOST = 1.02


def seconds(run: Callable[[], Tensor], backward: bool) -> float:
    begin = time.process_time()
    output = run()
    if backward:
        output.backward(output.detach())
    return time.process_time() - begin


def ratio(name: str, backward: bool) -> float:
    """The median of the times of `attend`, as shares of those of torch."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(CASES[name], requires_grad=backward) for _ in range(3))
    seen = name == "causal"
    mask = causal() if seen else None
    runs = (lambda: attend(q, k, v, mask=mask)), (lambda: F.scaled_dot_product_attention(q, k, v, is_causal=seen))
    torch.testing.assert_close(runs[0](), runs[1]())
    found = []
    for number in range(PAIRS + 2):
        times = {}
        for place in (0, 1) if number % 2 else (1, 0):
            times[place] = seconds(runs[place], backward)
        found.append(times[0] / times[1])
    return statistics.median(found[2:])


def main() -> int:
    torch.set_num_threads(1)
    holds = True
    for name, shape in CASES.items():
        for backward in (False, True):
            share = ratio(name, backward)
            holds = holds and share <= MOST
            passes = "forward and backward" if backward else "forward"
            print(f"{name:6} {shape}, {passes}: {share:.3f} of torch's time (bound: {MOST})")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
