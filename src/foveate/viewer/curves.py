"""Curves over the steps of a training."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from foveate.contracts import Picture
from foveate.viewer.plain_figure import PlainFigure

FEW = 12
"""Points that are marked, so that one sees where something was measured."""

Curves = Mapping[str, tuple[Sequence[float], Sequence[float]]]
"""For each name the places and the values there."""


def draw(curves: Curves, across: str, up: str) -> Picture:
    """A line for each name."""
    figure = PlainFigure(figsize=(6, 3.2), layout="constrained")
    axes = figure.subplots()
    _fill(axes, curves, across, list(curves))
    axes.axhline(0, color="#999999", linewidth=0.8)
    axes.set_ylabel(up)
    if len(curves) > 1:
        axes.legend(frameon=False)
    return figure


def draw_several(titled: Mapping[str, Curves], across: str) -> Picture:
    """Axes for each title, side by side, with a line for each name; names stand below all."""
    columns = max(1, min(3, len(titled)))
    rows = -(-max(1, len(titled)) // columns)
    figure = PlainFigure(figsize=(1 + 3.2 * columns, 2.7 * rows), layout="constrained")
    fields = figure.subplots(rows, columns, squeeze=False).ravel()
    names = list(dict.fromkeys(name for curves in titled.values() for name in curves))
    for axes, (title, curves) in zip(fields, titled.items(), strict=False):
        _fill(axes, curves, across, names)
        axes.set_title(title, fontsize=10)
    for axes in fields[len(titled) :]:
        axes.set_visible(False)
    lines = {str(line.get_label()): line for axes in fields for line in axes.get_lines()}
    if len(lines) > 1:
        figure.legend(list(lines.values()), list(lines), frameon=False, loc="outside lower center", ncols=len(lines))
    return figure


def _fill(axes: Axes, curves: Curves, across: str, names: Sequence[str]) -> None:
    """A name has the same colour everywhere."""
    for name, (places, values) in curves.items():
        marker, colour = "o" if len(places) < FEW else "", f"C{names.index(name)}"
        axes.plot(places, values, label=name, color=colour, marker=marker, markersize=3)
    if all(float(place).is_integer() for places, _ in curves.values() for place in places):
        axes.locator_params(axis="x", integer=True)
    axes.set_xlabel(across)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
