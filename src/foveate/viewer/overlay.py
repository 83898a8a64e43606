"""Attention over an image: the image beside the same image, bright where the weights are large."""

import numpy as np

from foveate.contracts import Picture
from foveate.viewer.plain_figure import PlainFigure


def draw(pixels: np.ndarray, weights: np.ndarray, title: str) -> Picture:
    """`pixels` (h, w, channels) in 8 bits, and the `weights` (rows, columns) of a grid that covers the image."""
    figure = PlainFigure(figsize=(6, 3.3), layout="constrained")
    plain, attended = figure.subplots(1, 2)
    shown = pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels
    height, width = pixels.shape[:2]
    plain.imshow(shown, cmap="gray", vmin=0, vmax=255)
    plain.set_title(title)
    attended.imshow(shown, cmap="gray", vmin=0, vmax=255)
    heat = attended.imshow(
        weights,
        cmap="inferno",
        alpha=0.6,
        vmin=0,
        extent=(-0.5, width - 0.5, height - 0.5, -0.5),
        interpolation="nearest",
    )
    attended.set_title("attention")
    figure.colorbar(heat, ax=attended, shrink=0.8, label="weight of a place")
    for axes in (plain, attended):
        axes.set_axis_off()
    return figure
