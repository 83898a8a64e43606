"""Dot product against scaled dot product, by the width D of the keys: variance of the scores, entropy of the weights
and size of the gradient.

The dot product of two random vectors of width D has a standard deviation of sqrt(D). Large scores saturate the softmax,
so that its gradient vanishes (Vaswani et al. 2017, section 3.2.1). The norm of a constant vector (a, ..., a) is
a sqrt(D), and the product of two of them a b D: their scores grow with D where those of random vectors grow with its
root, and with the root of D under the scale. A scale of 1/D makes up for vectors that are alike, and flattens the
weights of all others.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from rich.console import Console
from torch import Tensor

from foveate.attention import Dot, ScaledDot, Score, attend
from foveate.errors import UserError, at_least
from foveate.experiments.comparison import Comparison, DeviceOptions, Table, on_device
from foveate.experiments.drawing import GREY, legend_below, line, panels, powers_of_two

SCORES: dict[str, Callable[[int], Score]] = {
    "dot": lambda width: Dot(),
    "scaled dot": lambda width: ScaledDot(),
    "dot / D": lambda width: ScaledDot(1 / width),
}
"""Each score of vectors of a width."""

LEAST = 1e-12
"""Smaller gradients are not drawn: training cannot distinguish them from zero."""

WORDS: dict[str, Any] = {"va": "bottom", "fontsize": "small", "color": GREY}
"""The style of text in a panel."""

VECTORS = {"bare": "bare vectors", "projected": "keys projected", "constant": "constant vectors"}
"""What attends to what, with its name in pictures."""

STYLES: dict[str, Any] = {
    "bare": {"linestyle": "-", "marker": "o"},
    "projected": {"linestyle": "--", "marker": "s"},
    "constant": {"linestyle": ":", "marker": "x"},
}
"""How lines are drawn; their colour is that of the score."""

ZERO = 1e-45
"""Replaces a gradient of zero on the logarithmic axis; it is below the drawn range."""


@dataclass
class DotScaling(DeviceOptions):
    """Compare weights and gradients of dot products, as they are, divided by sqrt(D) and by D, by the width of keys."""

    widths: tuple[int, ...] = (1, 4, 16, 64, 256, 1024)
    """Widths D of queries and keys."""
    positions: int = 64
    """Number of vectors that attend to each other."""
    repeats: int = 20
    """Number of draws of random vectors, over which results are averaged."""


@dataclass(frozen=True)
class ScoreStatistics:
    """Statistics of scores and weights, each the mean over the draws."""

    score: str
    vectors: str
    width: int
    variance: float
    """Of the scores of all pairs of different vectors."""
    entropy: float
    """The mean entropy of a query's weights, in nats; the logarithm of the positions for uniform weights."""
    gradient: float
    """The gradient of a query's scores (root mean square; the median over queries) for standard normal gradients of the
    weights."""


@on_device
def run(options: DotScaling, console: Console) -> Comparison:
    """Measure all scores at all widths. Raises UserError for invalid sizes."""
    at_least(2, "positions", options.positions)
    at_least(1, "repeats", options.repeats)
    if not options.widths:
        raise UserError("no width to measure: give --widths at least one number")
    at_least(1, "widths", min(options.widths))
    results = []
    for width in options.widths:
        draws = [torch.randn(options.positions, width) for _ in range(options.repeats)]
        projections = [torch.randn(width, width) / math.sqrt(width) for _ in range(options.repeats)]
        numbers = [torch.randn(options.positions, 1) for _ in range(options.repeats)]
        sides = {
            "bare": [(x, x) for x in draws],
            "projected": [(x, x @ key) for x, key in zip(draws, projections, strict=True)],
            "constant": [(x.expand(-1, width), x.expand(-1, width)) for x in numbers],
        }
        for name, score in SCORES.items():
            for vectors, pairs in sides.items():
                parts = [_measure(queries, keys, score(width)) for queries, keys in pairs]
                variance, entropy, gradient = torch.tensor(parts, device="cpu").mean(0).tolist()
                results.append(ScoreStatistics(name, vectors, width, variance, entropy, gradient))
    return _report(options, results)


def _measure(q: Float[Tensor, "T D"], k: Float[Tensor, "S D"], score: Score) -> tuple[float, float, float]:
    """The variance of the scores, the mean entropy of the weights, and the size of the gradient of the scores."""
    scores = (q @ k.mT * (score.scale(q.shape[-1]) or 1.0))[~torch.eye(len(q), dtype=torch.bool)]
    bias = torch.zeros(len(q), len(k), requires_grad=True)  # its gradient is that of the scores
    weights = attend(q, k, torch.eye(len(k)), score=score, bias=bias, kernel="eager")
    (gradient,) = torch.autograd.grad(weights, bias, torch.randn_like(weights))
    weights = weights.detach()
    entropy = -torch.special.xlogy(weights, weights).sum(-1).mean()
    return float(scores.var()), float(entropy), float(gradient.square().mean(-1).sqrt().median())


def _report(options: DotScaling, results: list[ScoreStatistics]) -> Comparison:
    cases = [(score, vectors) for vectors in VECTORS for score in SCORES]
    names = {case: f"{case[0]}, {VECTORS[case[1]]}" for case in cases}
    chosen = {case: [result for result in results if (result.score, result.vectors) == case] for case in cases}
    variances, entropies, gradients = (
        Table(["D", *names.values()], title=title)
        for title in (
            "Variance of the scores",
            "Entropy of the weights, in nats",
            "Gradient that arrives at the scores",
        )
    )
    for index, width in enumerate(options.widths):
        parts = [chosen[case][index] for case in cases]
        variances.rows.append([f"{width:,}", *(f"{result.variance:.2f}" for result in parts)])
        entropies.rows.append([f"{width:,}", *(f"{result.entropy:.2f}" for result in parts)])
        gradients.rows.append([f"{width:,}", *(f"{result.gradient:.1e}" for result in parts)])
    figure, (axes,) = panels(1, 3, 4.2, 3.4)
    for case in cases:
        parts, number, how = chosen[case], [*SCORES].index(case[0]), STYLES[case[1]]
        line(axes[2], number, options.widths, [result.variance for result in parts], names[case], **how)
        line(axes[0], number, options.widths, [result.entropy for result in parts], names[case], **how)
        line(axes[1], number, options.widths, [max(result.gradient, ZERO) for result in parts], names[case], **how)
    most, top = math.log(options.positions), max(0.1, 1.5 * max(result.gradient for result in results))
    axes[0].axhline(most, color=GREY, linewidth=0.8, linestyle=":")
    axes[0].text(options.widths[-1], 1.015 * most, f"log {options.positions}: all alike", ha="right", **WORDS)
    axes[0].set(title="entropy of the weights, nats", ylim=(0, 1.12 * most))
    axes[1].set(title="gradient that arrives at the scores", yscale="log", ylim=(LEAST, top))
    axes[1].text(options.widths[0], 1.5 * LEAST, "lower ones are not shown", **WORDS)
    axes[2].plot(options.widths, [width**0.5 for width in options.widths], color=GREY, linestyle=":", linewidth=1)
    axes[2].text(options.widths[-1], options.widths[-1] ** 0.5, "norm of (1, ..., 1)", ha="right", **WORDS)
    axes[2].set(title="variance of the scores", yscale="log")
    for plot in axes:
        powers_of_two(plot, options.widths)
        plot.set_xlabel("width D")
    legend_below(figure, axes[0], 3)
    return Comparison(
        "Dot against scaled dot",
        [variances, entropies, gradients],
        {"": figure},
        [asdict(result) for result in results],
        [
            f"{options.positions} standard normal vectors attend to each other, {options.repeats} times. Bare: each "
            "is query and key as it is, so that its product with itself is about D. Projected: keys are vectors "
            "times a random matrix that keeps their size. Constant: each is one standard normal number, D times. "
            f"Entropy is at most log {options.positions} = {most:.2f}. "
            "The gradient is what arrives at the scores of a query (root mean square; the median of the queries) where "
            "what arrives at each weight is standard normal; a projection of the values does not touch it."
        ],
    )


OPTIONS = DotScaling
