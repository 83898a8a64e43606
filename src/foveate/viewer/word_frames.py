"""Moving pictures of words over an image: one frame for each word, with where the model looked, and the text below."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
import PIL.Image

from foveate.viewer.growing import LAST
from foveate.viewer.plain_figure import PlainFigure

STEP = 700
"""Milliseconds of a word."""

SIDE = 480
"""Pixels of the longer side of the image; larger images are scaled down, smaller ones up."""

LINE, MARGIN, GAP = 30, 12, 7
"""Pixels of a line of words, beside the lines, and between words."""

DPI, SIZE = 100, 13

TEXT_COLOURS = 32
CHOSEN, READ, TO_COME = "#0b66a5", "#222222", "#b5bcc4"


def save_words(panels: Sequence[tuple[str, np.ndarray]], file: BytesIO) -> None:
    """Write words, each with its image (h, w, 3), as a GIF; the first image, without a word, stands at the end."""
    words = [word for word, _ in panels]
    frames = [_frame(words, place, pixels) for place, (word, pixels) in enumerate(panels) if word]
    frames.append(_frame(words, len(words), panels[0][1]))
    first, *more = frames
    durations = [*[STEP] * len(more), LAST]
    first.save(file, format="GIF", save_all=True, append_images=more, duration=durations, loop=0)


def _frame(words: Sequence[str], chosen: int, pixels: np.ndarray) -> PIL.Image.Image:
    """An image above all words, of which those to come are pale."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    scale = SIDE / max(pixels.shape[:2])
    height, width = (max(1, round(scale * side)) for side in pixels.shape[:2])
    image = PIL.Image.fromarray(pixels).resize((width, height), PIL.Image.Resampling.LANCZOS)
    figure = PlainFigure(figsize=(width / DPI, 1), dpi=DPI)
    canvas: Any = FigureCanvasAgg(figure)
    lines = _lines(figure, canvas, words, width)
    below = LINE * len(lines) + 2 * MARGIN
    figure.set_size_inches(width / DPI, below / DPI)
    for number, line in enumerate(lines):
        for place, left in line:
            colour = CHOSEN if place == chosen else READ if place < chosen else TO_COME
            weight = "bold" if place == chosen else "normal"
            up = 1 - (MARGIN + LINE * (number + 0.5)) / below
            figure.text(left / width, up, words[place], size=SIZE, color=colour, va="center", weight=weight)
    canvas.draw()
    text = np.asarray(canvas.buffer_rgba())[..., :3]
    return _indexed(image, PIL.Image.fromarray(np.ascontiguousarray(text[:, :width])))


def _indexed(image: PIL.Image.Image, text: PIL.Image.Image) -> PIL.Image.Image:
    """An image above a text, in 256 colours, of which the text has its own: else its few words would lose theirs."""
    upper = image.quantize(256 - TEXT_COLOURS)
    lower = text.quantize(TEXT_COLOURS, dither=PIL.Image.Dither.NONE)
    palettes = [np.array(part.getpalette() or [], np.uint8).reshape(-1, 3) for part in (upper, lower)]
    colours = np.zeros((256, 3), np.uint8)
    colours[: len(palettes[0])] = palettes[0]
    start = 256 - TEXT_COLOURS
    colours[start : start + len(palettes[1])] = palettes[1]
    joined = PIL.Image.fromarray(np.concatenate([np.asarray(upper), np.asarray(lower) + np.uint8(start)]))
    joined.putpalette(colours.tobytes())
    return joined


def _lines(figure: Any, canvas: Any, words: Sequence[str], width: int) -> list[list[tuple[int, float]]]:
    """The words of each line, each with its left edge, as wide as if all were bold."""
    texts = [figure.text(0, 0, word, size=SIZE, weight="bold") for word in words]
    canvas.draw()
    wide = [text.get_window_extent(canvas.get_renderer()).width if text.get_text() else 0.0 for text in texts]
    for text in texts:
        text.remove()
    lines: list[list[tuple[int, float]]] = [[]]
    left = float(MARGIN)
    for place, own in enumerate(wide):
        if not own:
            continue
        if lines[-1] and left + own > width - MARGIN:
            lines.append([])
            left = float(MARGIN)
        lines[-1].append((place, left))
        left += own + GAP
    return lines
