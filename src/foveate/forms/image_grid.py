"""Pictures in rows, as one file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import PIL.Image

from foveate.errors import at_least, at_most
from foveate.files import check_ending, check_place, written

MOST_SAMPLES = 1_000
"""Pictures in a row, at most."""

GAP = 8
"""Pixels between two pictures."""

WHITE = 255


def check_image_file(path: Path) -> None:
    """Raise UserError for a place that no picture can be written to."""
    check_ending(path, ".png")
    check_place(path)


def check_samples(count: int) -> None:
    """Raise UserError for a number of pictures that no row of a file has."""
    at_least(1, "samples", count)
    at_most(MOST_SAMPLES, "samples", count)


def grid_image(rows: Sequence[Sequence[np.ndarray]], side: int) -> PIL.Image.Image:
    """Pictures (h, w, C) in 8 bits, each enlarged by a whole number to at least about `side` pixels."""
    height, width = rows[0][0].shape[:2]
    times = max(1, side // max(height, width))
    down, across = times * height + GAP, times * width + GAP
    page = PIL.Image.new("RGB", (GAP + across * max(map(len, rows)), GAP + down * len(rows)), (225, 225, 225))
    for top, row in enumerate(rows):
        for left, pixels in enumerate(row):
            picture = PIL.Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).convert("RGB")
            picture = picture.resize((times * width, times * height), PIL.Image.Resampling.NEAREST)
            page.paste(picture, (GAP + left * across, GAP + top * down))
    return page


def save_grid(rows: Sequence[Sequence[np.ndarray]], path: Path, side: int) -> None:
    """Write such a picture."""
    page = grid_image(rows, side)
    with written(path) as temporary:
        page.save(temporary, "png")
