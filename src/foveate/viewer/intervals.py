"""Figures with their intervals, one below the other."""

from collections.abc import Sequence
from typing import Any

from foveate.viewer.plain_figure import PlainFigure

DOT, LINE = "#1f5fa8", "#9dbbe0"


def draw_intervals(names: Sequence[str], figures: Sequence[Any], title: str) -> PlainFigure:
    """A dot for each value and a line over its interval; `figures` have a value, a low and a high end."""
    figure = PlainFigure(figsize=(7.0, 1.2 + 0.45 * len(names)), layout="constrained")
    axes = figure.subplots()
    for place, one in enumerate(figures):
        axes.plot([one.low, one.high], [place, place], color=LINE, linewidth=5, solid_capstyle="butt")
        axes.plot([one.value], [place], "o", color=DOT)
        axes.annotate(f"{one.value:.2f}", (one.value, place), (0, 7), textcoords="offset points", ha="center", size=8)
    axes.set_yticks(range(len(names)), labels=[*names])
    axes.set_ylim(len(names) - 0.4, -0.75)
    axes.set_title(title, loc="left", size=10)
    axes.set_xlabel("with 95 % intervals")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure
