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


class WordStrip(PlainFigure):
    """A figure of an image and its words, which can also be shown one after the other."""

    panels: Sequence[tuple[str, np.ndarray]] = ()
    """Each word with its image; the first is the image alone, without a word."""


def draw(pixels: np.ndarray, words: Sequence[str], maps: Float[Tensor, "T i j"], title: str = "") -> Picture:
    """`pixels` (h, w, channels) in 8 bits; `maps` are the weights of each word over a grid that covers the image."""
    colours = _in_colour(pixels)
    panels = [colours, *(foveated(colours, weights.numpy()) for weights in maps)]
    return _strip(list(zip(["", *words], panels, strict=True)), title)


def draw_film(frames: np.ndarray, maps: np.ndarray, title: str = "") -> Picture:
    """`frames` (T, h, w, 3) in 8 bits; `maps` (T, i, j) are the weights of each, on one scale."""
    most = float(maps.max())
    panels = [
        (f"{number}", foveated(frame, own, most))
        for number, (frame, own) in enumerate(zip(frames, maps, strict=True), 1)
    ]
    return _strip([("", frames[0]), *panels], title)


def _in_colour(pixels: np.ndarray) -> np.ndarray:
    return np.repeat(pixels, 3, -1) if pixels.shape[-1] == 1 else pixels


def _strip(panels: Sequence[tuple[str, np.ndarray]], title: str) -> Picture:
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = WordStrip(figsize=(1.6 * columns, 1.85 * rows + 0.3), layout="constrained")
    figure.panels = panels
    for place, axes in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        axes.set_axis_off()
        if place < len(panels):
            axes.imshow(panels[place][1], interpolation="nearest")
            axes.set_title(panels[place][0], fontsize=13)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def draw_rows(pixels: np.ndarray, rows: Sequence[WordRow]) -> Picture:
    """A row of panels for each model or head: its name with the image, then the image for each of its words."""
    columns = 1 + max(len(row.words) for row in rows)
    figure = PlainFigure(figsize=(1.15 * columns, 1.4 * len(rows) + 0.2), layout="constrained")
    for row, line in zip(rows, figure.subplots(len(rows), columns, squeeze=False), strict=True):
        colours = _in_colour(pixels if row.pixels is None else row.pixels)
        panels = [colours, *(foveated(colours, weights.numpy()) for weights in row.maps)]
        for axes in line:
            axes.set_axis_off()
        for axes, panel, word in zip(line, panels, [row.name, *row.words], strict=False):
            axes.imshow(panel, interpolation="nearest")
            axes.set_title(word, fontsize=9)
    return figure


def foveated(pixels: np.ndarray, weights: np.ndarray, most: float | None = None) -> np.ndarray:
    """The image (h, w, 3), sharp and bright in proportion to the weights (i, j), of which `most` is sharp: by default
    the greatest."""
    most = float(weights.max()) if most is None else most
    height, width = pixels.shape[:2]
    heat = PIL.Image.fromarray((weights / max(most, 1e-9)).astype(np.float32), "F")
    share = np.asarray(heat.resize((width, height), PIL.Image.Resampling.BILINEAR))[..., None].clip(0, 1)
    blurred = PIL.Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(max(1, width // 40)))
    mixed = share * pixels + (1 - share) * np.asarray(blurred)
    return ((DARK + (1 - DARK) * share) * mixed).round().astype(np.uint8)
