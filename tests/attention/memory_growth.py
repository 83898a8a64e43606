"""How much more memory each score, bias, mask and selection takes for more places: run by test_linear_memory.py."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from foveate.attention import (
    Additive,
    Biaffine,
    BucketedPosition,
    ContextualPosition,
    Cosine,
    Dot,
    Entmax,
    Fading,
    Features,
    Gaussian,
    Hard,
    HardCapped,
    Linear,
    LinearDistance,
    LinearGridDistance,
    Monotonic,
    MultiToken,
    RandomFeatures,
    RelativeGridKeys,
    RelativeGridPosition,
    RelativeKeys,
    RelativePosition,
    ScaledDot,
    Sigmoid,
    Soft,
    SoftCapped,
    SoftmaxPlusOne,
    Sparsemax,
    SquaredDistance,
    TalkingHeads,
    TopK,
    around,
    attend,
    big_bird,
    causal,
    chosen_blocks,
    grid_window,
    kernels,
    leading,
    longformer,
    padding,
    same_text,
    segments,
    strided,
    window,
)
from foveate.attention.kernels import blocked, rows, sdpa

HEADS, WIDTH, COLUMNS = 2, 4, 32

Options = Callable[[int], dict[str, Any]]
"""The options of an attention call among this many places."""


def halves(places: int) -> torch.Tensor:
    return torch.tensor([places // 2, places - places // 2])


def chosen(places: int) -> dict[str, Any]:
    return {"mask": causal() & chosen_blocks(torch.randn(places, WIDTH), torch.randn(places, WIDTH), size=64, count=2)}


CALLS: dict[str, Options] = {
    "nothing else": lambda n: {},
    "Dot": lambda n: {"score": Dot()},
    "ScaledDot": lambda n: {"score": ScaledDot(), "kernel": "rows"},
    "Biaffine": lambda n: {"score": Biaffine(WIDTH, WIDTH)},
    "Additive": lambda n: {"score": Additive(WIDTH, WIDTH, 3)},
    "Cosine": lambda n: {"score": Cosine(HEADS)},
    "SquaredDistance": lambda n: {"score": SquaredDistance()},
    "SoftCapped": lambda n: {"score": SoftCapped(ScaledDot(), 3.0)},
    "HardCapped": lambda n: {"score": HardCapped(ScaledDot(), 3.0)},
    "Sigmoid": lambda n: {"select": Sigmoid()},
    "Sparsemax": lambda n: {"select": Sparsemax()},
    "Entmax": lambda n: {"select": Entmax()},
    "TopK": lambda n: {"select": TopK(5)},
    "SoftmaxPlusOne": lambda n: {"select": SoftmaxPlusOne()},
    "Soft": lambda n: {"select": Soft(torch.zeros(HEADS, requires_grad=True))},
    "Hard": lambda n: {"select": Hard()},
    "Monotonic": lambda n: {"select": Monotonic()},
    "TalkingHeads": lambda n: {"select": TalkingHeads(HEADS)},
    "MultiToken": lambda n: {"select": MultiToken(HEADS), "mask": causal()},
    "ContextualPosition": lambda n: {"select": ContextualPosition(WIDTH, 8), "mask": causal()},
    "Linear": lambda n: {"select": Linear(), "score": Features(torch.exp)},
    "Features": lambda n: {
        "select": Linear(),
        "score": Features(RandomFeatures(WIDTH, 8)),
        "mask": causal(),
    },
    "Fading": lambda n: {"select": Linear(normalize=False), "score": Fading(), "mask": causal()},
    "LinearDistance": lambda n: {"bias": LinearDistance(torch.rand(HEADS))},
    "LinearGridDistance": lambda n: {"bias": LinearGridDistance(torch.rand(HEADS), columns=COLUMNS)},
    "Gaussian": lambda n: {"bias": Gaussian(torch.rand(HEADS, n, requires_grad=True) * n, 3.0)},
    "BucketedPosition": lambda n: {"bias": BucketedPosition(HEADS, 8, 64, True)},
    "RelativePosition": lambda n: {"bias": RelativePosition(HEADS, 7)},
    "RelativeKeys": lambda n: {"bias": RelativeKeys(WIDTH, 7)},
    "RelativeGridPosition": lambda n: {
        "bias": RelativeGridPosition(HEADS, 7).with_grids(*[(n // COLUMNS, COLUMNS)] * 2)
    },
    "RelativeGridKeys": lambda n: {"bias": RelativeGridKeys(WIDTH, n).with_grids(*[(n // COLUMNS, COLUMNS)] * 2)},
    "causal": lambda n: {"mask": causal()},
    "causal later": lambda n: {"mask": causal(1)},
    "window": lambda n: {"mask": window(64)},
    "grid_window": lambda n: {"mask": grid_window(3, COLUMNS)},
    "padding": lambda n: {"mask": padding(torch.tensor([n // 2]))},
    "causal and padding": lambda n: {"mask": causal() & padding(torch.tensor([n // 2]))},
    "segments": lambda n: {"mask": segments(halves(n))},
    "same_text": lambda n: {"mask": same_text(torch.arange(n)[None] // 100)},
    "around": lambda n: {"mask": around(torch.rand(1, 1, n) * n, 20.0)},
    "strided": lambda n: {"mask": causal() & strided(2)},
    "leading": lambda n: {"mask": causal() | leading(8)},
    "longformer": lambda n: {"mask": longformer(20, 2)},
    "big_bird": lambda n: {"mask": big_bird(n, 64, 2)},
    "chosen_blocks": chosen,
    "LinearDistance, causal": lambda n: {"bias": LinearDistance(torch.ones(HEADS)), "mask": causal()},
    "Entmax, LinearDistance, window": lambda n: {
        "select": Entmax(),
        "bias": LinearDistance(torch.ones(HEADS)),
        "mask": window(512),
    },
    "Additive, RelativePosition, window": lambda n: {
        "score": Additive(WIDTH, WIDTH, 3),
        "bias": RelativePosition(HEADS, 7),
        "mask": window(512),
    },
    "dropout": lambda n: {"dropout": 0.1, "mask": causal(1)},
}


def call(options: dict[str, Any], places: int) -> None:
    """An attention call, forward and backward."""
    width = WIDTH + isinstance(options.get("score"), Fading)
    q, k = (torch.randn(1, HEADS, places, width, requires_grad=True) for _ in range(2))
    v = torch.randn(1, HEADS, places, WIDTH, requires_grad=True)
    attend(q, k, v, **options).sum().backward()


def peak(run: Callable[[], object]) -> float:
    """By how many MiB `run` raises the memory of this process at its peak, from what it holds before."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    run()
    return _status("VmHWM") - before


def _status(name: str) -> float:
    return int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0]) / 1024


def main(few: int, many: int) -> None:
    """Prints the growth of the peak from few to many places by name, in MiB, and what the scores of all heads take."""
    torch.set_num_threads(1)
    kernels.LARGE = 0
    for kernel in (blocked, rows, sdpa):
        kernel.BLOCK = 2**16
    found = {}
    for name, options in CALLS.items():
        peaks = [peak(lambda n=n, options=options: call(options(n), n)) for n in (few, few, many)]
        found[name] = peaks[-1] - peaks[-2]
    found["all scores"] = peak(lambda: torch.ones(HEADS, many, many))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
