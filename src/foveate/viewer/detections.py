"""The picture of what a detector found: boxes over an image, and where each query looked."""

from collections.abc import Sequence

import numpy as np

from foveate.contracts import Picture

MOST = 7
"""Objects that get a panel of their own: the surest ones."""


def plot_detections(
    pixels: np.ndarray,
    boxes: Sequence[tuple[str, Sequence[float]]],
    maps: Sequence[np.ndarray],
    covered: tuple[float, float, float, float],
) -> Picture:
    """An image (h, w, 3) with named boxes, by their corners in pixels, and beside it the attention (rows, columns) of
    the query of each one. `covered` is the part of the image that a map covers: left, right, bottom, top."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    shown = min(len(boxes), MOST)
    columns = min(4, 1 + shown)
    rows = -(-(1 + shown) // columns)
    height, width = pixels.shape[:2]
    figure = Figure(figsize=(2.6 * columns, rows * (2.6 * height / width + 0.35)), layout="constrained")
    panels = [figure.add_subplot(rows, columns, place + 1) for place in range(1 + shown)]
    colours = [f"C{number % 10}" for number in range(len(boxes))]
    for number, panel in enumerate(panels):
        panel.imshow(pixels)
        panel.set_axis_off()
        chosen = range(len(boxes)) if number == 0 else [number - 1]
        for place in chosen:
            name, (left, top, right, bottom) = boxes[place]
            corner = Rectangle((left, top), right - left, bottom - top, fill=False, color=colours[place], linewidth=1.6)
            panel.add_patch(corner)
            if number:
                panel.set_title(name, fontsize=8, color=colours[place])
        if number:
            weights = maps[number - 1]
            panel.imshow(weights, cmap="inferno", alpha=0.6, extent=covered, interpolation="bilinear")
        panel.set_xlim(0, width)
        panel.set_ylim(height, 0)
    panels[0].set_title(f"{len(boxes)} objects", fontsize=8)
    return figure
