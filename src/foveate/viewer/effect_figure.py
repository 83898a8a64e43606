"""A picture of effects: the places of the input above, a grid of layers and heads below, on one diverging scale."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any, TypeAlias

import numpy as np
import PIL.Image
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from foveate.contracts import Picture
from foveate.viewer.document import EffectPanel
from foveate.viewer.plain_figure import PlainFigure
from foveate.viewer.sides import Audio, Image

COLOURS = "RdBu"
"""Red where the answer needs it, blue where it is better without."""

LINE = 24
"""Places in a line of the input."""

PLACES = 240
"""Words that are drawn; of a longer input only images and heads are."""

VEIL = 0.7
"""How much of an image its effects hide."""


PICTURE = 3.2
"""Height of an image, in inches."""

Named: TypeAlias = tuple[Sequence[str], Image | Audio | None]
"""The names of the keys of a site, and what picture they are a grid of."""


def draw(panel: EffectPanel, keys: Sequence[Named]) -> Picture:
    """Effects on the score: red for what the answer needs, blue for what it is better without. `keys` are those of the
    site of each part of the input."""
    words, grids = _words(panel, keys), _grids(panel, keys)
    words = words if len(words) <= PLACES else []
    lines, heads = -(-len(words) // LINE), max(map(len, panel.heads.values()))
    sizes = [*[0.62 * lines] * bool(words), *[PICTURE] * len(grids), 0.3 * len(panel.heads) + 0.9]
    width = max(7.0, 0.5 * min(LINE, max(len(words), 1)), 0.42 * heads + 3)
    figure = PlainFigure(figsize=(width, sum(sizes) + 0.9), layout="constrained")
    above = [*figure.subplots(len(sizes), 1, height_ratios=sizes, squeeze=False)[:, 0]]
    below = above.pop()
    places = [one.change for part in panel.places for one in part.effects]
    for number, axes in enumerate(above):
        norm = _scale(figure, axes, places, True)
        if words and number == 0:
            _draw_words(axes, words, norm)
        else:
            _draw_grid(axes, *grids[number - bool(words)], norm)
    if above:
        above[0].set_title("change without a place of the input", fontsize=9, loc="left")
    of_heads = [one.change for own in panel.heads.values() for one in own]
    _draw_heads(below, panel, heads, _scale(figure, below, of_heads, True))
    figure.suptitle(f"{panel.answer}   {panel.score_name} {panel.value:.2f}", fontsize=11)
    return figure


def _words(panel: EffectPanel, keys: Sequence[Named]) -> list[tuple[str, float]]:
    """The places that are no cells of an image: the name and the effect of each."""
    return [
        (names[place], one.change)
        for part, (names, picture) in zip(panel.places, keys, strict=True)
        for place, one in zip(part.places, part.effects, strict=True)
        if not isinstance(picture, Image) or place < len(picture.before)
    ]


def _grids(panel: EffectPanel, keys: Sequence[Named]) -> list[tuple[Image, np.ndarray]]:
    """The images that were read, and the effect of each of their cells."""
    found = []
    for part, (_, picture) in zip(panel.places, keys, strict=True):
        if isinstance(picture, Image):
            cells = [
                one.change for place, one in zip(part.places, part.effects, strict=True) if place >= len(picture.before)
            ]
            found.append((picture, np.reshape(cells, (picture.height, picture.width))))
    return found


def _scale(figure: Any, axes: Any, changes: list[float], shown: bool) -> Normalize:
    """A scale that is the same on both sides of 0, with its colour bar."""
    most = max(map(abs, changes), default=0) or 1.0
    norm = Normalize(-most, most)
    if shown:
        size: Any = {"fraction": 0.03, "aspect": 30, "shrink": 0.9}
        bar = figure.colorbar(ScalarMappable(norm, COLOURS), ax=axes, ticks=[-most, 0, most], **size)
        bar.ax.set_yticklabels([f"{-most:.2g}", "0", f"{most:+.2g}"])
        bar.ax.tick_params(length=2, labelsize=7)
        bar.outline.set_visible(False)
    return norm


def _draw_words(axes: Any, words: Sequence[tuple[str, float]], norm: Normalize) -> None:
    lines = max(1, -(-len(words) // LINE))
    grid = np.full((lines, min(LINE, len(words))), np.nan)
    for place, (name, change) in enumerate(words):
        down, right = divmod(place, LINE)
        grid[down, right] = change
        strong = abs(norm(change) - 0.5) > 0.35
        short = name if len(name) <= 9 else f"{name[:8]}…"
        axes.text(right, down, short, ha="center", va="center", fontsize=7, color="white" if strong else "black")
    axes.imshow(grid, cmap=COLOURS, norm=norm, aspect="auto")
    axes.set_axis_off()


def _draw_grid(axes: Any, picture: Image, cells: np.ndarray, norm: Normalize) -> None:
    """The image in grey, under the effects of its cells."""
    with PIL.Image.open(BytesIO(picture.data)) as opened:
        pixels = np.asarray(opened.convert("L"))
    box = (0, pixels.shape[1], pixels.shape[0], 0)
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=255, extent=box)
    axes.imshow(cells, cmap=COLOURS, norm=norm, alpha=VEIL, extent=box, interpolation="nearest")
    axes.set_axis_off()


def _draw_heads(axes: Any, panel: EffectPanel, heads: int, norm: Normalize) -> None:
    grid = np.full((len(panel.heads), heads), np.nan)
    for row, own in enumerate(panel.heads.values()):
        grid[row, : len(own)] = [one.change for one in own]
    axes.imshow(grid, cmap=COLOURS, norm=norm, aspect="auto")
    axes.set_yticks(range(len(grid)), [*panel.heads], fontsize=7)
    axes.set_xticks(range(heads), [str(head) for head in range(heads)], fontsize=7)
    axes.set_title("change without a head", fontsize=9, loc="left")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
