"""Draws heatmaps with matplotlib. `figures` imports this module only when it draws: matplotlib loads slowly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.lines import Line2D
from matplotlib.text import Text

from foveate.viewer.fonts import find_fonts
from foveate.viewer.maps import Alignment
from foveate.viewer.plain_figure import PlainFigure

COLOURS = LinearSegmentedColormap.from_list(
    "foveate", ["#f5fafc", "#c5e2ee", "#97cbe5", "#68b2dc", "#3796cf", "#1177b6", "#115896", "#203c6e", "#1c2348"]
)
"""From white to dark blue in equal steps of CIELAB lightness, readable with colour blindness and in grey print."""

SMALL = 10
"""Maps with at most this many tokens on each side have larger cells that show the weights as numbers."""

LONGEST = 24
"""Maximum number of characters of a label; a shortened label ends in '…'."""

LATER = "·"
"""First character of a piece that continues a word."""

EVEN = 0.16
"""A map is nearly even if its rows are, on average, within this many nats of the same weight on each of their keys."""

EVEN_MARK = "  nearly even"
"""What follows the title of such a map, in grey."""

_FONT, _TITLE_FONT = 9, 11  # points; all lengths below are in inches
_LARGE_CELL, _SMALL_CELL = 0.4, 0.23
_LINE = 0.16  # a line of text
_PAD = 0.13  # between labels and cells, with the line that joins the pieces of a word
_GAP, _MARGIN, _BAR = 0.4, 0.15, 0.1  # between maps, around all, and the colour bar's width
_SLANT = 0.5**0.5  # height of a text at 45 degrees, relative to its length
_TITLES = 0.6  # beside the cells, for the titles of the axes
_LONGEST_BAR = 2.0
_LEGEND = 0.95  # text beside the colour bar
_MOST_PIXELS = 10_000  # per side; larger figures get a lower resolution, since memory is limited
_GREY = "#757575"


def draw(maps: Sequence[Alignment], columns: int) -> PlainFigure:
    """The figure of `foveate.viewer.plot_alignments`."""
    small = all(max(each.weights.shape) <= SMALL for each in maps)
    scale = PowerNorm(0.5, 0, max(float(each.weights.max()) for each in maps) or 1.0)  # as on the page
    maps = [each._replace(title=each.title + EVEN_MARK) if _even(each) else each for each in maps]
    maps, style = drawable(maps)
    panels = [_measure(each, style, _LARGE_CELL if small else _SMALL_CELL) for each in maps]
    return _draw([panels[start : start + columns] for start in range(0, len(panels), columns)], scale)


def _even(each: Alignment) -> bool:
    """Returns whether a map has about the same weight on all keys of a row from the first to the last that has any."""
    weights = each.weights.detach().float().cpu().numpy()
    weights = weights / np.maximum(weights.sum(1, keepdims=True), 1e-12)
    entropy = -(weights * np.log(np.maximum(weights, 1e-12))).sum(1)
    any_weight = weights > 0
    keys = np.where(any_weight.any(1), weights.shape[1] - any_weight.argmax(1) - any_weight[:, ::-1].argmax(1), 1)
    return bool(keys.max() > 2 and (np.log(keys) - entropy).mean() < EVEN)


def drawable(maps: Sequence[Alignment]) -> tuple[list[Alignment], dict[str, Any]]:
    """The maps with labels that can be drawn, and the text style: suitable fonts, and no mathematics between '$'."""
    maps = [each._replace(target=[*map(_visible, each.target)], source=[*map(_visible, each.source)]) for each in maps]
    families, replacements = find_fonts(text for each in maps for text in (*each.target, *each.source, each.title))

    def replace(text: str) -> str:
        return text.translate(replacements)

    maps = [
        one._replace(target=[*map(replace, one.target)], source=[*map(replace, one.source)], title=replace(one.title))
        for one in maps
    ]
    return maps, {"fontfamily": families, "parse_math": False}


def _visible(label: str) -> str:
    """Replace white space by visible symbols and shorten long labels."""
    label = label.replace("\n", "↵").replace("\r", "↵").replace("\t", "⇥")
    label = label if label.strip() else "␣" * len(label)
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


@dataclass
class _Panel:
    """A map, the style its texts are measured in, and its extent in inches from the upper left corner of its cells."""

    each: Alignment
    style: dict[str, Any]
    cell: float
    left: float
    top: float
    right: float
    labels: float
    """Height of the source labels, below the title."""

    @property
    def width(self) -> float:
        return self.cell * len(self.each.source)

    @property
    def height(self) -> float:
        return self.cell * len(self.each.target)


def _measure(each: Alignment, style: dict[str, Any], cell: float) -> _Panel:
    left = max(_TITLES, float(text_lengths(each.target, _FONT, style).max()) + _PAD)
    rise = _SLANT * (text_lengths(each.source, _FONT, style) + _LINE)
    ends = cell * (np.arange(len(rise)) + 0.5) + rise
    title = float(text_lengths([each.title], _TITLE_FONT, style)[0])
    labels = max(2 * _LINE + _PAD, float(rise.max()) + _PAD)
    top = labels + (2 * _LINE if each.title else 0)
    return _Panel(each, style, cell, left, top, max(cell * len(rise), float(ends.max()), title - left), labels)


def text_lengths(texts: Sequence[str], size: int, style: dict[str, Any]) -> np.ndarray:
    """The lengths of drawn texts, in inches."""
    ruler = PlainFigure(dpi=288)
    written = [ruler.text(0, 0, text, fontsize=size, **style) for text in texts]
    return np.array([text.get_window_extent().width / ruler.dpi for text in written])


def _draw(rows: list[list[_Panel]], norm: PowerNorm) -> PlainFigure:
    """Draw the panels in a grid, with aligned cells, and a colour bar."""
    columns = [[row[place] for row in rows if place < len(row)] for place in range(len(rows[0]))]
    *lefts, width = _starts([(max(p.left for p in column), max(p.right for p in column)) for column in columns])
    *tops, height = _starts([(max(p.top for p in row), max(p.height for p in row)) for row in rows])
    last = rows[0][-1]
    scale = lefts[-1] + last.width + _GAP / 2
    width = max(width, scale + _BAR + _LEGEND + _MARGIN)
    figure = PlainFigure(figsize=(width, height), dpi=min(144, _MOST_PIXELS / max(width, height)))

    def place(left: float, top: float, wide: float, high: float) -> Axes:
        return figure.add_axes((left / width, 1 - (top + high) / height, wide / width, high / height))

    for row, top in zip(rows, tops, strict=True):
        for panel, left in zip(row, lefts, strict=False):
            _draw_map(place(left, top, panel.width, panel.height), panel, norm)
            corner = (left - panel.left) / width, 1 - (top - panel.labels - _LINE) / height
            title = panel.each.title.removesuffix(EVEN_MARK)
            figure.text(*corner, title, fontsize=_TITLE_FONT)
            for x, y, remark in _remarks(panel, title, left, top):
                figure.add_artist(Text(x / width, 1 - y / height, remark, color=_GREY, fontsize=_FONT - 1))
    _draw_scale(place(scale, tops[0], _BAR, min(last.height, _LONGEST_BAR)), norm, rows[0][0].each.shows)
    return figure


def _remarks(panel: _Panel, title: str, left: float, top: float) -> list[tuple[float, float, str]]:
    """The titles of the axes in the corner, and whether the map is nearly even; with where they begin, in inches."""
    corner = left - _TITLES
    found = [(corner, top - 1.5 * _LINE, "reads →"), (corner, top - _LINE / 2, "writes ↓")]
    if panel.each.title != title:
        after = float(text_lengths([title], _TITLE_FONT, panel.style)[0]) + _PAD if title else 0
        found.append((left - panel.left + after, top - panel.labels - _LINE, EVEN_MARK.strip()))
    return found


def _starts(extents: list[tuple[float, float]]) -> list[float]:
    """The origins of items side by side, given their extents before and after the origin; last, the total extent."""
    starts, end = [], _MARGIN
    for before, after in extents:
        starts.append(end + before)
        end = starts[-1] + after + _GAP
    return [*starts, end - _GAP + _MARGIN]


def _draw_map(axes: Axes, panel: _Panel, norm: PowerNorm) -> None:
    each = panel.each
    weights = each.weights.detach().float().cpu().numpy()
    axes.pcolormesh(weights, cmap=COLOURS, norm=norm, edgecolors="white", linewidth=0.5)
    axes.set(xlim=(0, len(each.source)), ylim=(len(each.target), 0))
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=72 * _PAD * 0.8)
    axes.spines[:].set_visible(False)
    slanted: Any = {"rotation": 45, "rotation_mode": "anchor", "ha": "left", "va": "baseline"}
    axes.set_xticks(np.arange(len(each.source)) + 0.5, each.source, fontsize=_FONT, **slanted)
    axes.set_yticks(np.arange(len(each.target)) + 0.5, each.target, fontsize=_FONT)
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_color(_GREY if label.get_text().startswith(LATER) else "black")
    beside = (-0.35 * _PAD / panel.cell,) * 2
    for span in _words(each.source):
        axes.add_artist(Line2D(span, beside, color=_GREY, clip_on=False))
    for span in _words(each.target):
        axes.add_artist(Line2D(beside, span, color=_GREY, clip_on=False))
    if panel.cell == _LARGE_CELL:
        _write_weights(axes, weights, norm)


def _words(pieces: Sequence[str]) -> list[tuple[float, float]]:
    """The spans of words that have several pieces."""
    starts = [place for place, piece in enumerate(pieces) if not place or not piece.startswith(LATER)]
    ends = [*starts[1:], len(pieces)]
    return [(start + 0.2, end - 0.2) for start, end in zip(starts, ends, strict=True) if end - start > 1]


def _write_weights(axes: Axes, weights: np.ndarray, norm: PowerNorm) -> None:
    """Write two digits into each cell, except .00."""
    for (row, column), weight in np.ndenumerate(weights):
        digits = f"{weight:.2f}".removeprefix("0") if weight >= 0.005 else ""
        colour = "white" if norm(weight) > 0.55 else "black"
        axes.text(column + 0.5, row + 0.5, digits, ha="center", va="center", fontsize=_FONT - 1, color=colour)


def _draw_scale(axes: Axes, norm: PowerNorm, shows: str) -> None:
    """The colour bar beside what it shows: its ends and the middle of its colours, a quarter of the largest weight."""
    top = float(norm.vmax or 1)
    bar = axes.figure.colorbar(ScalarMappable(norm, COLOURS), cax=axes, ticks=[0, top / 4, top])
    bar.ax.set_yticklabels(["0", f"{top / 4:.2g}", f"{top:.2g} (largest)"])
    bar.ax.set_ylabel(shows, fontsize=_FONT - 1, color=_GREY)
    bar.ax.yaxis.set_label_position("left")
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2, labelsize=_FONT - 1)
