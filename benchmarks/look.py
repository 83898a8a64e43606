"""What looking costs: a GPT-2 of transformers with 12 layers, random weights, with and without foveate's `look`.

    python benchmarks/look.py             # all of it, which takes 13 GB of memory
    python benchmarks/look.py forward     # one part (15 minutes); with --pairs 3, a first impression

The parts are forward, measures, rows, received, long, page, view and explorer.

It needs transformers and, for the size of a page, bertviz (`pip install transformers ipython; pip install --no-deps
bertviz`), for pages in a browser Playwright and Chromium (`apt install chromium; pip install playwright`).
Memory is measured in a process of its own for each case, as its peak less what the process held before, with glibc told
to give back at once what is freed (what it keeps for later differs by some 50 MiB from run to run; such a process is
slow, so that times are those of another); beside queries and keys, where single pages count, they are counted when the
logits are there (`at_logits`). The forward pass is timed twice, with glibc as it is and keeping what is
freed. As it is, a pass that is not looked at would be faster after one that is, in the memory that this has left: so
each has a process of its own, and they take turns, so that a busy machine slows both. What else is compared takes turns
in one process where it fits into memory together.
Exits with status 1 when a bound does not hold.
"""

import argparse
import gc
import importlib.util
import statistics
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import foveate  # isort: skip, before torch: its threads shall sleep, not spin, while others work on the machine

import look_page
import torch
from gpt2 import HEADS, LAYERS, TOKENS, WIDTH, Bound, gpt2
from processes import GIVING_BACK, KEEPING, held, in_own_process, pages, process, spawned, timed
from torch import Tensor
from transformers import GPT2LMHeadModel

LONG, LONG_LAYERS = 32_768, 2
ROUNDS = 5
PAIRS = 15
"""Of passes: medians of five went from 0.98 to 1.07 on a virtual machine where single pairs differ by a tenth."""

MEMORY_ROUNDS = 5
SHORT_PASSES = 60
FEW = (0, 1, 7, 63, 511, 512, 1023, 1500, 2047, 2048, 2500, 3000, 3333, 4000, 4094, 4095)
"""The rows of the map that are asked for where only some are."""


def plain(model: GPT2LMHeadModel, ids: Tensor) -> None:
    model(ids, use_cache=False)


def looked(model: GPT2LMHeadModel, ids: Tensor) -> None:
    with foveate.look(model):
        model(ids, use_cache=False)


def measured(model: GPT2LMHeadModel, ids: Tensor) -> None:
    """Look, then ask three things of every head of every layer."""
    with foveate.look(model) as sight:
        model(ids, use_cache=False)
    for site in map(sight.__getitem__, sight.sites):
        site.measure("received", "entropy", "top")
        site.received(), site.entropy(), site.top(8)


def eager(model: GPT2LMHeadModel, ids: Tensor) -> None:
    """Nothing but the weights, as transformers gives them."""
    model(ids, use_cache=False, output_attentions=True)


def long(model: GPT2LMHeadModel, ids: Tensor) -> None:
    with foveate.look(model) as sight:
        model.transformer(ids, use_cache=False)
    for site in map(sight.__getitem__, sight.sites):
        assert site.pooled(64, 64).isfinite().all()


def cost(run: Callable[..., Any], *model: Any) -> tuple[float, float]:
    """Seconds of a run, and how many MiB it needs at most beside what this process holds before."""
    gpt, ids = gpt2(*model)
    timed(run, gpt, ids[:, :64])  # what is loaded once does not count
    gc.collect()
    before = held("VmRSS")
    seconds = timed(run, gpt, ids)
    return seconds, held("VmHWM") - before


def at_logits(run: Callable[..., Any]) -> float:
    """MiB that a pass holds when it has made its logits, where it holds most, beside what this process holds before.

    Pages are counted one by one: the kernel adds VmRSS and VmHWM up in batches for each core, and can be wrong by more
    than what is asked for here. A pass before this one has loaded what is loaded once, and libraries have the room that
    they keep for tensors of this size: 0.3 MiB more in the first look of a process. Short passes before that fill
    CPython's cache of 4,096 attributes (`sys._clear_type_cache` empties it), which keeps many of the strings that
    torch makes for each call while a function mode is on: 5 to 8 pages of a second look.
    """
    model, ids = gpt2()
    for _ in range(SHORT_PASSES):
        timed(run, model, ids[:, :64])
    timed(run, model, ids)
    gc.collect()
    before, at_last = pages(), []
    model.lm_head.register_forward_hook(lambda *_: at_last.append(pages()))
    timed(run, model, ids)
    return (at_last[0] - before) / 1024


def passed(run: Callable[..., Any]) -> float:
    """Seconds of a pass of the model that this process keeps."""
    return timed(run, *own_model())


@cache
def own_model() -> tuple[GPT2LMHeadModel, Tensor]:
    return gpt2()


def pairs(environment: dict[str, str], count: int) -> tuple[float, float, float]:
    """Seconds of a forward pass, of one that is looked at, and the ratio, medians of passes by turns."""
    with process(environment) as without, process(environment) as looking:
        rounds = range(count + 1)
        times = [(without.submit(passed, plain).result(), looking.submit(passed, looked).result()) for _ in rounds][1:]
    plainly, with_look = (statistics.median(each) for each in zip(*times, strict=True))
    return plainly, with_look, statistics.median(b / a for a, b in times)


def forward(count: int = PAIRS) -> list[Bound]:
    bounds = []
    for how, environment in (("as it is", {}), ("keeping what is freed", KEEPING)):
        without, with_look, ratio = pairs(environment, count)
        print(f"forward, glibc {how}: {without:.2f} s, looked at {with_look:.2f} s; ratio {ratio:.3f}", flush=True)
        bounds.append((f"time of a forward pass, looked at / not, paired median, glibc {how}", ratio, 1.05))
    kept = 2 * LAYERS * TOKENS * WIDTH * 4 / 2**20
    ratios = []
    for _ in range(MEMORY_ROUNDS):
        without, with_look = (spawned(GIVING_BACK, at_logits, run) for run in (plain, looked))
        ratios.append((with_look - without) / kept)
        added = f"looking adds {(with_look - without) * 1024:,.0f} KiB"
        print(f"memory: {without:,.2f} MiB; {added}; queries and keys are {kept * 1024:,.0f} KiB")
    return [*bounds, ("memory that looking adds / queries and keys, median", statistics.median(ratios), 1.0)]


def measures() -> list[Bound]:
    ours, our_peak = in_own_process(cost, measured)
    theirs, their_peak = in_own_process(cost, eager, TOKENS, LAYERS, "eager")
    print(f"look, then received, entropy and top(8) of all heads: {ours:.1f} s, {our_peak:,.0f} MiB")
    print(f"transformers' eager weights alone: {theirs:.1f} s, {their_peak:,.0f} MiB")
    return [
        ("time of look and three measures / eager weights", ours / theirs, 1 / 2),
        ("memory of look and three measures / eager weights", our_peak / their_peak, 1 / 6),
    ]


def rows() -> list[Bound]:
    model = gpt2()
    whole = statistics.median(timed(plain, *model) for _ in range(3))
    with torch.no_grad(), foveate.look(model[0]) as sight:
        plain(*model)
    sites = [sight[name] for name in sight.sites]

    def ask() -> None:
        for site in sites:
            site.weights(queries=FEW)

    few = statistics.median(timed(ask) for _ in range(ROUNDS))
    print(f"forward: {whole:.2f} s; {len(FEW)} rows of every head: {few:.3f} s")
    return [(f"{len(FEW)} exact rows of every head / a forward pass", few / whole, 0.01)]


def received() -> list[Bound]:
    """Of one layer: the sums over queries, beside the attention that the forward pass made."""
    model, ids = gpt2(layers=1)
    with torch.no_grad(), foveate.look(model) as sight:
        plain(model, ids)
    (site,) = (sight[name] for name in sight.sites)
    (part,) = site.calls
    q, k = (x.contiguous() for x in (part.call.queries, site.keys.read(part.span)))
    v = torch.randn_like(k)

    def attention() -> None:
        torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def received() -> None:
        found.append(site.received())

    found: list[Tensor] = []
    rounds = [(timed(attention), timed(received)) for _ in range(ROUNDS + 1)][1:]
    exact = torch.zeros(HEADS, TOKENS, dtype=torch.float64)
    for head in range(HEADS):
        scores = q[0, head].double() @ k[0, head].double().T * (WIDTH // HEADS) ** -0.5
        hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
        exact[head] = scores.masked_fill(hidden, -torch.inf).softmax(-1).sum(0)
    error = float(torch.stack([((one[0] - exact) / exact).abs().max() for one in found]).max())  # NaN if one is
    medians = [statistics.median(times) for times in zip(*rounds, strict=True)]
    print("one layer: attention {:.3f} s, received {:.3f} s".format(*medians))
    return [
        # 1.25 would be for sums that know the log-sum-exp of the forward pass, which these do not.
        ("received() / attention", statistics.median(b / a for a, b in rounds), 2.25),
        ("received(), largest relative error", error, 1e-5),
    ]


def long_text() -> list[Bound]:
    seconds, most = in_own_process(cost, long, LONG, LONG_LAYERS)
    print(f"{LONG:,} tokens, {LONG_LAYERS} layers, look and pooled(64, 64): {seconds:.0f} s, {most:,.0f} MiB")
    return [(f"memory for {LONG:,} tokens, in GiB", most / 1024, 24)]


PARTS = {
    "forward": forward,
    "measures": measures,
    "rows": rows,
    "received": received,
    "long": long_text,
    "page": look_page.page,
    "view": look_page.view,
    "explorer": look_page.explorer,
}
NEEDED = {"page": "bertviz", "view": "playwright", "explorer": "playwright"}
"""Without these a part is left out, unless it is asked for by name."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", help=f"one of {', '.join(PARTS)}")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="pairs of passes of the part forward")
    arguments = parser.parse_args()
    asked, parts = arguments.part, {**PARTS, "forward": partial(forward, arguments.pairs)}
    if others := [part for part in asked if part not in PARTS]:
        parser.error(f"there is no part {others[0]}: there are {', '.join(PARTS)}")
    chosen = asked or [part for part in PARTS if importlib.util.find_spec(NEEDED.get(part, "foveate"))]
    print(f"GPT-2 of {LAYERS} layers, random weights, {torch.get_num_threads()} threads, torch {torch.__version__}")
    missed = False
    for part in chosen:
        for what, found, bound in parts[part]():
            holds = found <= bound  # as NaN is not
            missed |= not holds
            print(f"  {what}: {found:.4g} (bound: {bound:.3g}){'' if holds else '  DOES NOT HOLD'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
