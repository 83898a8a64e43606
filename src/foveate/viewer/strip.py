"""A caption word by word: the image once for each word, sharp and bright where the model looked, blurred elsewhere."""

from collections.abc import Sequence

import numpy as np
import PIL.Image
from jaxtyping import Float
from PIL import ImageFilter
from torch import Tensor

from foveate.contracts import Picture
from foveate.viewer.maps import WordRow
from foveate.viewer.plain_figure import PlainFigure

DARK = 0.25
"""Brightness of what gets no attention."""

COLUMNS = 7
"""Images side by side; more words begin a new row."""


def draw(pixels: np.ndarray, words: Sequence[str], maps: Float[Tensor, "T i j"], title: str = "") -> Picture:
    """`pixels` (h, w, channels) in 8 bits; `maps` are the weights of each word over a grid that covers the image."""
    colours = np.repeat(pixels, 3, -1) if pixels.shape[-1] == 1 else pixels
    panels = [colours, *(foveated(colours, weights.numpy()) for weights in maps)]
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = PlainFigure(figsize=(1.6 * columns, 1.85 * rows + 0.3), layout="constrained")
    for place, axes in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        axes.set_axis_off()
        if place < len(panels):
            axes.imshow(panels[place], interpolation="nearest")
            axes.set_title(["", *words][place], fontsize=13)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def draw_rows(pixels: np.ndarray, rows: Sequence[WordRow]) -> Picture:
    """A row of panels for each model or head: its name with the image, then the image for each of its words."""
    colours = np.repeat(pixels, 3, -1) if pixels.shape[-1] == 1 else pixels
    columns = 1 + max(len(row.words) for row in rows)
    figure = PlainFigure(figsize=(1.15 * columns, 1.4 * len(rows) + 0.2), layout="constrained")
    for row, line in zip(rows, figure.subplots(len(rows), columns, squeeze=False), strict=True):
        panels = [colours, *(foveated(colours, weights.numpy()) for weights in row.maps)]
        for axes in line:
            axes.set_axis_off()
        for axes, panel, word in zip(line, panels, [row.name, *row.words], strict=False):
            axes.imshow(panel, interpolation="nearest")
            axes.set_title(word, fontsize=9)
    return figure


def foveated(pixels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The image (h, w, 3), sharp and bright in proportion to the weights (i, j), whose greatest is sharp."""
    height, width = pixels.shape[:2]
    heat = PIL.Image.fromarray((weights / max(weights.max(), 1e-9)).astype(np.float32), "F")
    share = np.asarray(heat.resize((width, height), PIL.Image.Resampling.BILINEAR))[..., None].clip(0, 1)
    blurred = PIL.Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(max(1, width // 40)))
    mixed = share * pixels + (1 - share) * np.asarray(blurred)
    return ((DARK + (1 - DARK) * share) * mixed).round().astype(np.uint8)
