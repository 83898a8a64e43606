"""The picture of what was found in an image: boxes, points or regions over it, and where each one's query looked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foveate.contracts import Picture

MOST = 15
"""Marks that get a panel of their own: the first ones."""

COLOURS = 10
"""Colours before the first one is used again."""


@dataclass(frozen=True)
class Mark:
    """Something in an image, in pixels."""

    name: str
    box: Sequence[float] | None = None
    """Left, top, right and bottom."""
    point: Sequence[float] | None = None
    """Across and down."""
    region: np.ndarray | None = None
    """Which pixels are part of it (h, w)."""


def plot_marks(
    pixels: np.ndarray,
    marks: Sequence[Mark],
    maps: Sequence[np.ndarray],
    covered: tuple[float, float, float, float],
    title: str = "",
) -> Picture:
    """An image (h, w, 3) with all marks, and beside it the attention (rows, columns) of the query of each one.

    `covered` is the part of the image that a map covers: left, right, bottom, top.
    """
    from foveate.viewer.plain_figure import PlainFigure

    shown = min(len(marks), MOST)
    columns = min(4, 1 + shown)
    rows = -(-(1 + shown) // columns)
    height, width = pixels.shape[:2]
    figure = PlainFigure(figsize=(2.6 * columns, rows * (2.6 * height / width + 0.35)), layout="constrained")
    panels = [figure.add_subplot(rows, columns, place + 1) for place in range(1 + shown)]
    for number, panel in enumerate(panels):
        panel.imshow(pixels if pixels.shape[-1] == 3 else np.repeat(pixels, 3, -1))
        panel.set_axis_off()
        for place in range(len(marks)) if number == 0 else [number - 1]:
            _add(panel, marks[place], f"C{place % COLOURS}", filled=number == 0)
        if number:
            panel.set_title(marks[number - 1].name, fontsize=8, color=f"C{(number - 1) % COLOURS}")
            panel.imshow(maps[number - 1], cmap="inferno", alpha=0.6, extent=covered, interpolation="bilinear")
        panel.set_xlim(0, width)
        panel.set_ylim(height, 0)
    panels[0].set_title(title, fontsize=8)
    return figure


def _add(panel: Any, mark: Mark, colour: str, filled: bool) -> None:
    """Draw a mark into a panel; a region as its area where it is `filled`, else as its outline."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    if mark.box is not None:
        left, top, right, bottom = mark.box
        panel.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, color=colour, linewidth=1.6))
    if mark.point is not None:
        panel.plot(*([side] for side in mark.point), "o", color=colour, markersize=5, markeredgecolor="white")
    if mark.region is not None and filled:
        panel.imshow(mark.region[..., None] * np.array([*to_rgba(colour)[:3], 0.55]))
    elif mark.region is not None and 0 < mark.region.mean() < 1:
        panel.contour(mark.region, levels=[0.5], colors=[colour], linewidths=1.2)
