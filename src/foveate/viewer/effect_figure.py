"""A picture of effects: the places of the input above, a grid of layers and heads below, on one diverging scale."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from foveate.contracts import Picture
from foveate.viewer.document import EffectPanel
from foveate.viewer.plain_figure import PlainFigure

COLOURS = "RdBu"
"""Red where the answer needs it, blue where it is better without."""

LINE = 24
"""Places in a line of the input."""

PLACES = 240
"""Places that are drawn; of a longer input only the heads are."""


def draw(panel: EffectPanel, places: Sequence[str]) -> Picture:
    """Effects on the score: red for what the answer needs, blue for what it is better without. `places` are the names
    of the places of the input."""
    names = [*places] if len(places) <= PLACES else []
    lines, heads = -(-len(names) // LINE), max(map(len, panel.heads.values()))
    sizes = [0.62 * max(lines, 0.01), 0.3 * len(panel.heads) + 0.9]
    width = max(7.0, 0.5 * min(LINE, max(len(names), 1)), 0.42 * heads + 3)
    figure = PlainFigure(figsize=(width, sum(sizes) + 0.9), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=sizes)
    changes = [one.change for one in panel.keys]
    of_heads = [one.change for own in panel.heads.values() for one in own]
    _draw_places(above, names, changes, _scale(figure, above, changes, bool(names)))
    _draw_heads(below, panel, heads, _scale(figure, below, of_heads, True))
    figure.suptitle(f"{panel.answer}   {panel.score_name} {panel.value:.2f}", fontsize=11)
    return figure


def _scale(figure: Any, axes: Any, changes: list[float], shown: bool) -> Normalize:
    """A scale that is the same on both sides of 0, with its colour bar."""
    most = max(map(abs, changes), default=0) or 1.0
    norm = Normalize(-most, most)
    if shown:
        size: Any = {"fraction": 0.03, "aspect": 30, "shrink": 0.9}
        bar = figure.colorbar(ScalarMappable(norm, COLOURS), ax=axes, ticks=[-most, 0, most], **size)
        bar.ax.set_yticklabels([f"{-most:.2g}", "0", f"{most:+.2g}"])
        bar.ax.tick_params(length=2, labelsize=7)
        bar.outline.set_visible(False)
    return norm


def _draw_places(axes: Any, names: list[str], changes: list[float], norm: Normalize) -> None:
    lines = max(1, -(-len(names) // LINE))
    grid = np.full((lines, min(LINE, max(1, len(names)))), np.nan)
    for place, name in enumerate(names):
        down, right = divmod(place, LINE)
        grid[down, right] = changes[place]
        strong = abs(norm(changes[place]) - 0.5) > 0.35
        short = name if len(name) <= 9 else f"{name[:8]}…"
        axes.text(right, down, short, ha="center", va="center", fontsize=7, color="white" if strong else "black")
    axes.imshow(grid, cmap=COLOURS, norm=norm, aspect="auto")
    axes.set_axis_off()
    if names:
        axes.set_title("change without a place of the input", fontsize=9, loc="left")


def _draw_heads(axes: Any, panel: EffectPanel, heads: int, norm: Normalize) -> None:
    grid = np.full((len(panel.heads), heads), np.nan)
    for row, own in enumerate(panel.heads.values()):
        grid[row, : len(own)] = [one.change for one in own]
    axes.imshow(grid, cmap=COLOURS, norm=norm, aspect="auto")
    axes.set_yticks(range(len(grid)), [*panel.heads], fontsize=7)
    axes.set_xticks(range(heads), [str(head) for head in range(heads)], fontsize=7)
    axes.set_title("change without a head", fontsize=9, loc="left")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
