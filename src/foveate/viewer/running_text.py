"""Attention as running text: the text that is looked at, once for each token that looks, darker where it looked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.patches import FancyBboxPatch

from foveate.viewer.heatmaps import COLOURS, LATER, drawable, text_lengths
from foveate.viewer.maps import Alignment
from foveate.viewer.plain_figure import PlainFigure

WIDEST = 9.0
"""Inches after which a text goes on in the next line."""

FONT, TITLE_FONT = 11, 11  # points; all lengths below are in inches
_LINE, _GAP, _BETWEEN = 0.25, 0.11, 0.3  # a line, what is between two rows, and two maps
_SPACE, _PAD, _MARGIN = 0.07, 0.035, 0.15  # between words, around a word, around all
_MOST_PIXELS = 10_000
_GREY = "#757575"


@dataclass
class _Word:
    """A token of a text that is looked at: where it begins, in inches and lines, and how long it is."""

    text: str
    left: float
    line: int
    width: float


def draw(maps: Sequence[Alignment]) -> PlainFigure:
    """One line, or several, for each row of each map: its token, and the tokens of the columns as a text.

    All maps have one scale. Pieces of one word stand together.
    """
    scale = PowerNorm(0.5, 0, max(float(each.weights.max()) for each in maps) or 1.0)  # as heatmaps
    maps, style = drawable(maps)
    left = _MARGIN + max(float(text_lengths(each.target, FONT, style).max()) for each in maps) + 2 * _SPACE
    texts = [_set(each.source, style) for each in maps]
    lines = [1 + words[-1].line for words in texts]
    rows = [count * _LINE + _GAP for count in lines]
    heights = [_LINE + row * len(each.target) for row, each in zip(rows, maps, strict=True)]
    titles = max(float(text_lengths([each.title], TITLE_FONT, style)[0]) for each in maps)
    width = max(left + max(word.left + word.width for words in texts for word in words), titles + _MARGIN) + _MARGIN
    height = sum(heights) + _BETWEEN * (len(maps) - 1) + 2 * _MARGIN
    figure = PlainFigure(figsize=(width, height), dpi=min(144, _MOST_PIXELS / max(width, height)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    top = _MARGIN
    for each, words, row, taken in zip(maps, texts, rows, heights, strict=True):
        axes.text(_MARGIN, top + _LINE / 2, each.title, fontsize=TITLE_FONT, va="center", **style)
        for number, (token, weights) in enumerate(zip(each.target, each.weights.float().cpu().numpy(), strict=True)):
            _draw_row(axes, left, top + _LINE + _GAP + number * row, token, words, scale(weights), style)
        top += taken + _BETWEEN
    return figure


def _set(tokens: Sequence[str], style: dict[str, Any]) -> list[_Word]:
    """The tokens set as a text."""
    shown = [token.removeprefix(LATER) or token for token in tokens]
    words: list[_Word] = []
    at, line = 0.0, 0
    for token, text, width in zip(tokens, shown, text_lengths(shown, FONT, style), strict=True):
        at += 2 * _PAD if token.startswith(LATER) else 2 * _PAD + _SPACE
        if words and at + width > WIDEST:
            at, line = 2 * _PAD + _SPACE, line + 1
        words.append(_Word(text, at, line, float(width)))
        at += float(width)
    return words


def _draw_row(
    axes: Any, left: float, top: float, token: str, words: Sequence[_Word], shades: np.ndarray, style: dict[str, Any]
) -> None:
    """The token that looks, and each word on the colour of its weight."""
    colour = _GREY if token.startswith(LATER) else "black"
    axes.text(left - 2 * _SPACE, top + _LINE / 2, token, fontsize=FONT, ha="right", va="center", color=colour, **style)
    for word, shade in zip(words, shades, strict=True):
        x, y = left + word.left, top + word.line * _LINE
        box = (x - _PAD, y + _PAD / 2), word.width + 2 * _PAD, _LINE - _PAD
        corners = f"round,pad=0,rounding_size={_PAD}"
        axes.add_patch(FancyBboxPatch(*box, boxstyle=corners, facecolor=COLOURS(float(shade)), edgecolor="none"))
        ink = "white" if shade > 0.55 else "black"
        axes.text(x, y + _LINE / 2, word.text, fontsize=FONT, va="center", color=ink, **style)
