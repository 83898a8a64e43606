"""The style of the figures of comparisons."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from foveate.viewer.plain_figure import PlainFigure

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"]
"""A palette for colour-blind readers (Okabe and Ito 2008)."""

MARKS = ["o", "s", "^", "D", "v", "P", "X"]
"""A marker for each colour, for prints in grey."""

GREY = "#757575"


def panels(rows: int, columns: int, width: float = 4.2, height: float = 3.2, **sharing: Any) -> tuple[PlainFigure, Any]:
    """A figure and its grid of axes, (rows, columns); sizes of one panel in inches."""
    figure = PlainFigure(figsize=(columns * width, rows * height), dpi=144, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **sharing)
    for axes in grid.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e5e5e5", linewidth=0.6)
        axes.set_axisbelow(True)
    return figure, grid


def line(axes: Axes, number: int, x: Sequence[float], y: Sequence[float], label: str | None = None, **how: Any) -> None:
    """Draw the line of case `number`, which has the same colour and marker in all panels."""
    round_again, place = divmod(number, len(COLOURS))
    style = {"color": COLOURS[place], "marker": MARKS[place - round_again], "markersize": 4, "linewidth": 1.4}
    axes.plot(x, y, label=label, **{**style, **how})


def powers_of_two(axes: Axes, sizes: Sequence[int]) -> None:
    """A logarithmic x axis with ticks at the measured sizes."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()


def legend_below(figure: PlainFigure, axes: Axes, columns: int = 5) -> None:
    """One legend below all panels."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False)
