"""Moving pictures of heatmaps: the rows appear one after the other, as the model writes its words."""

from io import BytesIO
from typing import Any

import numpy as np
import PIL.Image

STEP, LAST = 450, 2500
"""Milliseconds of each row, and of the whole picture."""

COLOURS = 256
"""Colours of the file, the most that a GIF can have."""

RARE = 64
"""How many of them are kept for rare colours, as those at the edges of letters."""

MOST_ROWS = 100
"""Rows that appear one by one; of longer maps, several at a time."""


def save_growing(figure: Any, file: BytesIO) -> None:
    """Write a matplotlib figure as a GIF that begins with the first row of each heatmap and ends with all of them.

    A figure without heatmaps is written as it is.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    whole = np.asarray(canvas.buffer_rgba())[..., :3]
    maps = [_edges(axes, canvas.get_renderer(), len(whole)) for axes in figure.axes if _is_map(axes)]
    rows = max((len(edges) - 1 for _, edges in maps), default=1)
    step = -(-rows // MOST_ROWS)
    indices, palette = _indexed(whole)
    frames = []
    for shown in (*range(step, rows, step), rows):
        frame = indices.copy()
        for (left, right), edges in maps:
            if shown < len(edges) - 1:
                frame[edges[shown] : edges[-1], left:right] = 0
        frames.append(PIL.Image.fromarray(frame))
        frames[-1].putpalette(palette)
    first, *more = frames
    durations = [*[STEP] * len(more), LAST]
    first.save(file, format="GIF", save_all=True, append_images=more, duration=durations, loop=0)


def _indexed(pixels: np.ndarray) -> tuple[np.ndarray, bytes]:
    """Each pixel as the number of its colour, and the colours: white, the most frequent ones as they are, and of the
    others each time the one that is farthest from all before.

    Pillow's own reduction moves the background away from white.
    """
    colours, places, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    frequent = colours[np.argsort(-counts, kind="stable")[: COLOURS - 1 - RARE]].astype(np.int32)
    palette = [np.full(3, 255, np.int32), *frequent]
    numbers, distances = np.zeros(len(colours), np.uint8), np.full(len(colours), np.iinfo(np.int32).max)
    for number in range(COLOURS):
        if number == len(palette):
            palette.append(colours[distances.argmax()].astype(np.int32))
        new = ((colours - palette[number]) ** 2).sum(-1)
        numbers[new < distances] = number
        distances = np.minimum(distances, new)
    return numbers[places.reshape(pixels.shape[:2])], np.array(palette, np.uint8).tobytes()


def _is_map(axes: Any) -> bool:
    """Returns whether axes hold a heatmap of `viewer.heatmaps`, whose rows go from top to bottom."""
    return bool(axes.collections and axes.yaxis_inverted())


def _edges(axes: Any, renderer: Any, height: int) -> tuple[tuple[int, int], list[int]]:
    """The first and the last column of pixels of a map, labels included, and the pixels between its rows from the top
    down."""
    outer, inner = axes.get_tightbbox(renderer), axes.get_window_extent(renderer)
    count = round(axes.get_ylim()[0])
    ends = [height - axes.transData.transform((0, row))[1] for row in range(count + 1)]
    return (max(0, int(outer.x0)), int(np.ceil(inner.x1)) + 1), [round(end) for end in ends[:-1]] + [
        round(ends[-1]) + 1
    ]
