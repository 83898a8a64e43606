"""The table and the figure of sequential steps and path lengths."""

from typing import Any

from matplotlib.axes import Axes

from foveate.experiments import structure
from foveate.experiments.comparison import Table
from foveate.experiments.drawing import line, powers_of_two
from foveate.experiments.structure import Structure
from foveate.viewer.heatmaps import COLOURS
from foveate.viewer.plain_figure import PlainFigure

THEORY = {
    "recurrent": ("O(n)", "O(n)", "n d", "d"),
    "convolution": ("O(1)", "O(n/k)", "n d", "k d"),
    "dilated convolutions": ("O(1)", "O(log_k n)", "n d", "n d, at most"),
    "self-attention": ("O(1)", "O(1)", "n² a head, or n d", "n d"),
    "restricted self-attention": ("O(1)", "O(n/r)", "r n a head, or n d", "r d"),
}
"""Sequential steps and longest path (Vaswani et al. 2017, table 1); the numbers that a layer keeps for its backward
pass (attention: all weights, or with a fused kernel queries, keys and values), and those that it keeps between steps of
decoding."""

LAYERS, PLACES = 3, 10
"""The sizes of the small stacks in the figure."""

SMALL_RADIUS = 2
"""The radius of restricted attention in them."""


def _structures(kernel: int, radius: int) -> list[Structure]:
    return [
        structure.recurrent(),
        structure.convolution(kernel),
        structure.attention(),
        structure.attention(radius),
        structure.dilated_convolutions(kernel),
    ]


def table(options: Any) -> Table:
    """`options` are those of `layers.Layers`."""
    length = options.lengths[-1]
    counted = Table(
        [
            *("layer", "sequential steps", f"at n = {length:,}", "longest path", f"at n = {length:,}"),
            *("keeps in training", "keeps as it writes"),
        ],
        title="What waits for what, how far a signal travels, and what is kept",
    )
    for layer in _structures(options.kernel, options.radius):
        steps, path = structure.sequential_steps(layer, length), structure.longest_path(layer, length)
        waits, travels, *keeps = THEORY[layer.name]
        counted.rows.append([layer.name, waits, f"{steps:,}", travels, f"{path:,}", *keeps])
    return counted


def figure(options: Any) -> PlainFigure:
    """Steps and paths by length; below, the step at which each cell of some layers can be computed."""
    whole = PlainFigure(figsize=(11, 5), dpi=144, layout="constrained")
    parts: Any = whole.subfigures(2, 1, height_ratios=[2.4, 1])
    upper, lower = parts
    measures = {
        "sequential steps of a layer": structure.sequential_steps,
        "longest path, in cells": structure.longest_path,
    }
    curves: list[Axes] = list(upper.subplots(1, len(measures)))
    for axes, (title, measure) in zip(curves, measures.items(), strict=True):
        for number, layer in enumerate(_structures(options.kernel, options.radius)):
            how = {"linestyle": "--"} if layer.name == "convolution" else {}  # hardly differs from the recurrent line
            line(axes, number, options.lengths, [measure(layer, n) for n in options.lengths], layer.name, **how)
        axes.set(yscale="log", xlabel="length n", title=title)
        powers_of_two(axes, options.lengths)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e5e5e5", linewidth=0.6)
    upper.legend(*curves[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    title = f"the step at which each cell of {LAYERS} layers can be computed, those with one number in parallel"
    lower.suptitle(title, fontsize=10)
    small = _structures(options.kernel, SMALL_RADIUS)
    for axes, layer in zip(list(lower.subplots(1, len(small))), small, strict=True):
        _draw_cells(axes, layer)
    return whole


def _draw_cells(axes: Axes, layer: Structure) -> None:
    """A square for each cell, the first layer at the bottom; darker cells are computed later."""
    steps = structure.first_steps(layer, PLACES, LAYERS)
    last = PLACES + LAYERS
    axes.pcolormesh(steps, cmap=COLOURS, vmin=0, vmax=last, edgecolors="white", linewidth=1)
    for level, row in enumerate(steps):
        for position, step in enumerate(row):
            colour = "white" if step > 0.55 * last else "black"
            axes.text(position + 0.5, level + 0.5, str(step), ha="center", va="center", fontsize=7, color=colour)
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.set_xlabel(layer.name, fontsize=9)
    axes.spines[:].set_visible(False)
