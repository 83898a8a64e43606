"""Where in an image the numbers that a model reads come from, and which of its tokens stand where.

A processor may scale an image, cut its middle out, pad it, cut it into tiles and put patches into any order. None of
these is known here by the name of a model: `trace_origin` sends images through the processor whose colours say where
each pixel is. What comes out says where each number comes from.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import PIL.Image
from torch import Tensor

from foveate.tasks.viewers.windows import patch_size

WHOLE = (0.0, 0.0, 1.0, 1.0)
"""The box of a whole image."""

NEAR = 0.02
"""Shares of an image's side that count as nothing: a ramp has 256 colours."""

TALLEST = 1.1
"""Greatest ratio of the sides of a token's cell, in pixels that the model reads."""


class TokenGrid(NamedTuple):
    """Tokens that are a grid over an image."""

    name: str
    """"image"; "overview" for the small image that a model reads beside its tiles."""
    places: tuple[int, ...]
    """Their positions among all tokens, row by row of the image."""
    rows: int
    columns: int
    box: tuple[float, float, float, float] = WHOLE
    """Left, top, right and bottom of the grid, in widths and heights of the image: less where the processor cuts the
    image, more where it pads it."""


@dataclass
class Origin:
    """Where the numbers that a model reads come from, in widths and heights of the image; NaN where from nowhere."""

    across: np.ndarray
    """(tiles, h, w), or (patches,) for a model that is given patches."""
    down: np.ndarray
    """Of the same shape."""

    @property
    def tiles(self) -> int:
        return len(self.across) if self.across.ndim == 3 else 1


def trace_origin(prepare: Callable[[PIL.Image.Image], Mapping[str, Tensor]], picture: np.ndarray) -> Origin | None:
    """Finds where the pixels come from that a model reads of a picture (h, w, C); None for a processor that does not
    scale colours evenly.

    `prepare` makes a model's inputs of an image.
    """
    height, width = picture.shape[:2]
    across = np.broadcast_to((np.arange(width) + 0.5) / width, (height, width))
    down = np.broadcast_to(((np.arange(height) + 0.5) / height)[:, None], (height, width))
    grays = (np.zeros_like(across), np.ones_like(across), across, down)
    black, white, *ramps = (_pixels(prepare(_gray(gray))) for gray in grays)
    if black is None or any(one is None or one.shape != black.shape for one in (white, *ramps)):
        return None
    contrast = white - black
    if not contrast.any():
        return None
    contrast[np.abs(contrast) < 0.01 * np.abs(contrast).max()] = np.nan
    return Origin(*(_without_channels((ramp - black) / contrast) for ramp in ramps))


def find_regions(places: Sequence[int], origin: Origin | None, config: Any) -> list[TokenGrid]:
    """The grids that tokens of an image are, the finest first; none where they are not one for each cell of a grid.

    `places` are the positions of an image's tokens, in the order in which the model reads them.
    """
    if origin is None or not places:
        return []
    if origin.across.ndim == 1:
        return _of_patches(places, origin)
    if getattr(config, "image_grid_pinpoints", None):
        return _overview_and_lines(places, origin, config)
    return _of_tiles(places, origin)


def seen_part(picture: np.ndarray, box: tuple[float, float, float, float]) -> np.ndarray:
    """The part of a picture (h, w, C) that a grid covers, with black where it is larger than the picture."""
    height, width = picture.shape[:2]
    left, top, right, bottom = (round(edge * side) for edge, side in zip(box, (width, height) * 2, strict=True))
    found = np.zeros((max(1, bottom - top), max(1, right - left), *picture.shape[2:]), picture.dtype)
    inside = picture[max(0, top) : max(0, bottom), max(0, left) : max(0, right)]
    row, column = max(0, -top), max(0, -left)
    found[row : row + inside.shape[0], column : column + inside.shape[1]] = inside
    return found


def _gray(shares: np.ndarray) -> PIL.Image.Image:
    return PIL.Image.fromarray((255 * shares).round().astype(np.uint8)).convert("RGB")


def _pixels(inputs: Mapping[str, Tensor]) -> np.ndarray | None:
    found = [value for name, value in inputs.items() if name.startswith("pixel_values")]
    return found[0].double().numpy() if found else None


def _without_channels(values: np.ndarray) -> np.ndarray:
    """(tiles, h, w) of pixels with channels; (patches,) of patches in a row each."""
    channels = -3 if values.ndim > 3 else -1
    with np.errstate(invalid="ignore"):
        counted = (~np.isnan(values)).sum(channels)
        mean = np.nansum(values, channels) / np.where(counted, counted, np.nan)
    return mean.reshape(-1, *mean.shape[-2:]) if values.ndim > 3 else mean.ravel()


def _of_patches(places: Sequence[int], origin: Origin) -> list[TokenGrid]:
    """Tokens for as many patches each as stand together."""
    if len(origin.across) % len(places):
        return []
    across, down = (side.reshape(len(places), -1).mean(1) for side in (origin.across, origin.down))
    return _lattice("image", [*zip(places, across, down, strict=True)])


def _of_tiles(places: Sequence[int], origin: Origin) -> list[TokenGrid]:
    """Tokens for the cells of each tile, perhaps behind one token for the tile as a whole."""
    tiles = [tile for tile in range(origin.tiles) if not np.isnan(origin.across[tile]).all()]
    if len(places) % origin.tiles == 0:  # those without a picture have tokens too
        tiles = list(range(origin.tiles))
    if not tiles or len(places) % len(tiles):
        return []
    each = len(places) // len(tiles)
    shape = _shape(each, *origin.across.shape[1:])
    if shape is None:
        return []
    rows, columns = shape
    first = each - rows * columns
    found = [
        (origin_of, places[number * each + first : (number + 1) * each])
        for number, tile in enumerate(tiles)
        if (origin_of := _Tile.of(origin, tile)) is not None
    ]
    whole = [one for one in found if one[0].covers([tile for tile, _ in found])]
    fine = [one for one in found if one not in whole] or whole[:1]
    grids = _lattice("image", [cell for tile, own in fine for cell in tile.cells(own, rows, columns)])
    if grids and len(found) > 1 and whole and whole[0] is not fine[0]:
        tile, own = whole[0]
        grids += _lattice("overview", tile.cells(own, rows, columns))
    return grids


def _overview_and_lines(places: Sequence[int], origin: Origin, config: Any) -> list[TokenGrid]:
    """The whole image as a square, then a finer grid in its own shape with a token at the end of each line."""
    patch = patch_size(config)
    side = origin.across.shape[1] // patch[0] if patch else 0
    overview, fine = places[: side * side], places[side * side :]
    tiles = [tile for number in range(1, origin.tiles) if (tile := _Tile.of(origin, number)) is not None]
    whole = _lattice("overview", _Tile.must(origin, 0).cells(overview, side, side))
    cells = [cell for tile in tiles for cell in tile.cells(range(side * side), side, side)]
    if not (side and whole and (near := _lattice("image", cells))):
        return [whole[0]._replace(name="image")] if whole and not fine else []
    fits = [(rows, len(fine) // rows - 1) for rows in range(1, len(fine) + 1) if len(fine) % rows == 0]
    ratio = near[0].columns / near[0].rows
    shapes = [shape for shape in fits if shape[1] > 0]
    if not shapes:
        return []
    rows, columns = min(shapes, key=lambda shape: abs(math.log(shape[1] / shape[0] / ratio)))
    lines = np.asarray(fine).reshape(rows, columns + 1)[:, :-1]
    return [TokenGrid("image", tuple(lines.ravel().tolist()), rows, columns, near[0].box), *whole]


class _Tile(NamedTuple):
    """An upright part of an image: how far its pixels are apart in it, where the first is, and which have a colour."""

    across: tuple[float, float]
    down: tuple[float, float]
    inside: np.ndarray

    @classmethod
    def of(cls, origin: Origin, tile: int) -> "_Tile | None":
        across, down = origin.across[tile], origin.down[tile]
        inside = ~np.isnan(across)
        sides = [_line(across, inside, 0), _line(down, inside, 1)]
        return None if None in sides else cls(sides[0], sides[1], inside)  # type: ignore[arg-type]

    @classmethod
    def must(cls, origin: Origin, tile: int) -> "_Tile":
        found = cls.of(origin, tile)
        return found or cls((math.nan, math.nan), (math.nan, math.nan), np.zeros(origin.across.shape[1:], bool))

    def covers(self, others: Sequence["_Tile"]) -> bool:
        """Whether the tile shows all that others show."""
        return all(
            own[0] <= other[0] + NEAR and own[1] >= other[1] - NEAR
            for tile in others
            for own, other in zip(self._ends(), tile._ends(), strict=True)
        )

    def cells(self, places: Sequence[int], rows: int, columns: int) -> list[tuple[int, float, float]]:
        """Of each token that sees some of the image: its position, and the middle of its cell."""
        height, width = self.inside.shape
        found = []
        for number, place in enumerate(places):
            row, column = divmod(number, columns)
            top, left = row * height / rows, column * width / columns
            bottom, right = top + height / rows, left + width / columns
            if self.inside[int(top) : math.ceil(bottom), int(left) : math.ceil(right)].any():
                middle = (left + right - 1) / 2, (top + bottom - 1) / 2
                across, down = (step * at + start for (step, start), at in zip(self[:2], middle, strict=True))
                found.append((place, across, down))
        return found

    def _ends(self) -> list[tuple[float, float]]:
        seen = (np.flatnonzero(self.inside.any(axis)) for axis in (0, 1))
        return [
            (start + step * (at[0] - 0.5), start + step * (at[-1] + 0.5))
            for (step, start), at in zip(self[:2], seen, strict=True)
        ]


def _line(values: np.ndarray, inside: np.ndarray, axis: int) -> tuple[float, float] | None:
    """How much values grow from one column (or row) to the next, and where they begin."""
    seen = np.flatnonzero(inside.any(axis))
    if len(seen) < 2:
        return None
    means = np.nanmean(values.take(seen, 1 - axis), axis)
    inner = slice(1, -1) if len(seen) > 3 else slice(None)  # scaling blurs a ramp where it ends
    step, start = np.polyfit(seen[inner], means[inner], 1)
    return float(step), float(start)


def _shape(count: int, height: int, width: int) -> tuple[int, int] | None:
    """Rows and columns of cells that are squares of pixels, with at most one token before them; None without any."""
    for cells in (count, count - 1):
        rows = round(math.sqrt(cells * height / width)) if cells > 1 else 0
        if rows and cells % rows == 0:
            columns = cells // rows
            tall = height / rows / (width / columns)
            if max(tall, 1 / tall) < TALLEST and cells > 1:
                return rows, columns
    return None


def _lattice(name: str, cells: Sequence[tuple[int, float, float]]) -> list[TokenGrid]:
    """Tokens in the rows and columns of a grid; none where some cell has none, or two."""
    if not cells:
        return []
    places, across, down = (np.asarray(side) for side in zip(*cells, strict=True))
    (columns, left, right), (rows, top, bottom) = _steps(across), _steps(down)
    grid = np.full((rows.max() + 1, columns.max() + 1), -1)
    grid[rows, columns] = places
    if grid.size != len(cells) or (grid < 0).any():
        return []
    box = left, top, right, bottom
    return [TokenGrid(name, tuple(grid.ravel().tolist()), len(grid), grid.shape[1], box)]


def _steps(values: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Which column, or row, each value is in, and where the first begins and the last ends."""
    gaps = np.diff(np.sort(values))
    most = gaps.max(initial=0.0)
    if most < NEAR / 10:
        return np.zeros(len(values), int), 0.0, 1.0
    step = float(gaps[gaps > most / 2].mean())
    numbers = np.round((values - values.min()) / step).astype(int)
    return numbers, _edge(float(values.min()) - step / 2), _edge(float(values.max()) + step / 2)


def _edge(value: float) -> float:
    """An edge of an image where it is nearly one."""
    return float(round(value)) if abs(value - round(value)) < NEAR else value
