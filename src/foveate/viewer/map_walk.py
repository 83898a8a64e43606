"""A walk on a map, beside the words of the instruction that each step attended to."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from foveate.contracts import Picture
from foveate.viewer.plain_figure import PlainFigure

COLOURS = ("#8c6bb1", "#41ab5d", "#c69214", "#d6604d", "#4393c3", "#999999", "#e78ac3", "#a6611a")
"""Of the floors, in alphabetical order."""

MARGIN = 0.6
"""Free space around the map, in halls: enough for the arrow of the last heading."""


def draw(
    halls: Sequence[tuple[tuple[int, int], tuple[int, int], str]],
    items: Mapping[tuple[int, int], str],
    path: Sequence[tuple[int, int, int]],
    words: Sequence[str],
    actions: Sequence[str],
    weights: np.ndarray,
) -> Picture:
    """`halls` are pairs of places with a floor; `path` the poses (x, y, heading), one more than moves; `weights`
    (T, S) those of the S `words` at each of the T `actions`."""
    figure = PlainFigure(figsize=(6 + 0.36 * len(words), 5.2), layout="constrained")
    world, heat = figure.subplots(1, 2, width_ratios=(5, 1 + 0.36 * len(words)))
    _draw_map(world, halls, items)
    xs, ys = [x for x, _, _ in path], [y for _, y, _ in path]
    world.plot(xs, ys, color="black", linewidth=2.5, zorder=3)
    world.plot(xs[0], ys[0], "o", color="black", markersize=11, zorder=4)
    x, y, heading = path[-1]
    dx, dy = {0: (0, -0.45), 90: (0.45, 0), 180: (0, 0.45), 270: (-0.45, 0)}[heading]
    world.annotate("", (x + dx, y + dy), (x, y), arrowprops={"arrowstyle": "-|>", "lw": 2.5}, zorder=5)
    heat.imshow(weights, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    heat.set_xticks(range(len(words)), words, rotation=60, ha="right")
    heat.set_yticks(range(len(actions)), actions)
    return figure


def _draw_map(
    axes: Axes,
    halls: Sequence[tuple[tuple[int, int], tuple[int, int], str]],
    items: Mapping[tuple[int, int], str],
) -> None:
    floors = sorted({floor for *_, floor in halls})
    shown = set()
    for (x, y), (other_x, other_y), floor in halls:
        colour = COLOURS[floors.index(floor) % len(COLOURS)]
        label = None if floor in shown else floor
        axes.plot((x, other_x), (y, other_y), color=colour, linewidth=9, solid_capstyle="butt", label=label, zorder=1)
        shown.add(floor)
    for (x, y), item in items.items():
        axes.plot(x, y, "s", color="white", markeredgecolor="#666666", markersize=6, zorder=2)
        axes.annotate(item, (x, y), (6, 6), textcoords="offset points", fontsize=8, zorder=6)
    xs, ys = zip(*items, strict=True)
    axes.set_xlim(min(xs) - MARGIN, max(xs) + MARGIN)
    axes.set_ylim(max(ys) + MARGIN, min(ys) - MARGIN)  # y grows downwards
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=4, frameon=False, fontsize=8)
