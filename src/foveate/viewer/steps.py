"""Attention to an image, step by step: one panel for each token that was written."""

from collections.abc import Sequence

import numpy as np

from foveate.contracts import Picture
from foveate.viewer.plain_figure import PlainFigure

MOST_COLUMNS = 6


def draw(pixels: np.ndarray, weights: np.ndarray, tokens: Sequence[str], title: str) -> Picture:
    """The image and, for each token, the image under its weights.

    `pixels` (h, w) are grey in 8 bits; `weights` (T, rows, columns) are of a grid that covers the image, one for each
    of the T `tokens`. Each panel is bright where its weights are large, relative to the largest of the panel.
    """
    height, width = pixels.shape
    columns = min(len(tokens) + 1, MOST_COLUMNS)
    rows = -(-(len(tokens) + 1) // columns)
    figure = PlainFigure(figsize=(2.2 * columns, rows * (2.0 * height / width + 0.5)), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels:
        axes.set_axis_off()
    panels[0].imshow(pixels, cmap="gray", vmin=0, vmax=255)
    panels[0].set_title(title, fontsize=11)
    extent = (-0.5, width - 0.5, height - 0.5, -0.5)
    for axes, token, map_ in zip(panels[1:], tokens, weights, strict=False):
        axes.imshow(pixels, cmap="gray", vmin=0, vmax=255)
        axes.imshow(map_, cmap="inferno", alpha=0.6, vmin=0, extent=extent, interpolation="bilinear")
        axes.set_title(token, fontsize=13)
    return figure
