"""Scenes composed of drawings on a background: images whose boxes, names and classes are known exactly.

A scene follows from its number alone, so that a data set of any size takes no memory and repeats exactly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import PIL.Image

SEED = 36

SHARE_HIDDEN = 0.1
"""The most of a drawing's box that the box of another one may cover."""

TRIES = 30
"""How often a place is drawn for a drawing that fits nowhere; then it is left out."""

VISIBLE = 16
"""Alpha, of 255, from which a pixel of a drawing counts as visible."""

OPAQUE = 128
"""Alpha from which a pixel of a scene shows the drawing, and not what is behind it."""


@dataclass(frozen=True)
class Sprite:
    """A small picture that is put on a background. It comes in several styles, each (h, w, 4) RGBA in 8 bits, cropped
    to what is visible."""

    name: str
    category: str
    """Its class, such as "food-fruit"."""
    group: str
    """A coarser class, such as "food-drink"."""
    styles: tuple[np.ndarray, ...] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Thing:
    """A sprite with its place in a scene."""

    drawing: Sprite
    style: int
    box: tuple[int, int, int, int]
    """Left, top, right and bottom in pixels; right and bottom are those of the first pixels outside."""

    def draw(self) -> PIL.Image.Image:
        """The drawing in its size, RGBA."""
        left, top, right, bottom = self.box
        drawing = PIL.Image.fromarray(self.drawing.styles[self.style])
        return drawing.resize((right - left, bottom - top), PIL.Image.Resampling.BILINEAR)


@dataclass(frozen=True)
class Scene:
    """One composed image of `size` x `size` pixels."""

    number: int
    size: int
    things: tuple[Thing, ...]
    """In reading order: from left to right in each third of the height."""
    ground: tuple[int, int, int] | None = None
    """The colour behind all things; without one, a gradient of random colours."""

    def draw(self) -> PIL.Image.Image:
        """The image, RGB."""
        if self.ground is None:
            image = PIL.Image.fromarray(_background(np.random.default_rng((SEED, self.number, 1)), self.size))
        else:
            image = PIL.Image.new("RGB", (self.size, self.size), self.ground)
        for thing in self._from_afar():
            drawing = thing.draw()
            image.paste(drawing, thing.box[:2], drawing)
        return image

    def mask(self, numbers: Mapping[str, int]) -> np.ndarray:
        """The number of the group of the thing that each pixel (size, size) shows; 0 for the background."""
        found = np.zeros((self.size, self.size), np.int64)
        for thing in self._from_afar():
            left, top, right, bottom = thing.box
            visible = np.asarray(thing.draw())[..., 3] >= OPAQUE
            found[top:bottom, left:right][visible] = numbers[thing.drawing.group]
        return found

    def _from_afar(self) -> list["Thing"]:
        """The things in the order in which they are drawn: what is lower is nearer."""
        return sorted(self.things, key=lambda thing: thing.box[3])


class Scenes(Sequence[Scene]):
    """The scenes of the numbers from `first` on, each with 1 to `most` of the given drawings."""

    def __init__(
        self,
        drawings: Sequence[Sprite],
        first: int,
        count: int,
        size: int = 128,
        sides: tuple[int, int] = (28, 64),
        most: int = 6,
    ) -> None:
        """`sides` are the least and the greatest length of a drawing's longer side, in pixels."""
        self._drawings, self._first, self._count = drawings, first, count
        self._size, self._sides, self._most = size, sides, most

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> Scene:  # type: ignore[override]
        if not -self._count <= place < self._count:
            raise IndexError(place)
        number = self._first + place % self._count
        generator = np.random.default_rng((SEED, number, 0))
        things: list[Thing] = []
        for _ in range(generator.integers(1, self._most + 1)):
            drawing = self._drawings[int(generator.integers(len(self._drawings)))]
            style = int(generator.integers(len(drawing.styles)))
            box = self._place(generator, drawing.styles[style].shape, [thing.box for thing in things])
            if box is not None:
                things.append(Thing(drawing, style, box))
        return Scene(number, self._size, tuple(sorted(things, key=self._reading_order)))

    def _place(
        self, generator: np.random.Generator, shape: tuple[int, ...], others: list[tuple[int, int, int, int]]
    ) -> tuple[int, int, int, int] | None:
        """A box of the drawing's proportions that hides little of the others, None where none was found."""
        for _ in range(TRIES):
            side = np.exp(generator.uniform(*np.log(self._sides)))
            height, width = (max(1, round(side * part / max(shape[:2]))) for part in shape[:2])
            left, top = (int(generator.integers(self._size - part + 1)) for part in (width, height))
            box = left, top, left + width, top + height
            if all(_covered(box, other) <= SHARE_HIDDEN for other in others):
                return box
        return None

    def _reading_order(self, thing: Thing) -> tuple[int, int]:
        left, top, right, bottom = thing.box
        return 3 * (top + bottom) // (2 * self._size), left + right


def crop_to_visible(pixels: np.ndarray) -> np.ndarray:
    """The part of a drawing (h, w, 4) that can be seen; nothing where all is transparent."""
    visible = pixels[..., 3] >= VISIBLE
    rows, columns = (np.flatnonzero(visible.any(axis)) for axis in (1, 0))
    if not len(rows):
        return pixels[:0, :0]
    return pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _covered(one: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> float:
    """The area that two boxes share, as a share of the smaller one's."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    smaller = min((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return max(width, 0) * max(height, 0) / smaller


def _background(generator: np.random.Generator, size: int) -> np.ndarray:
    """A gradient from one random colour to another in a random direction, with a little noise, (size, size, 3)."""
    first, last = generator.integers(0, 256, (2, 3)).astype(np.float32)
    down, right = generator.uniform(-1, 1, 2)
    line = np.linspace(-0.5, 0.5, size, dtype=np.float32)
    share = (0.5 + (down * line[:, None] + right * line) / max(abs(down) + abs(right), 1e-6))[..., None]
    noise = generator.normal(0, 4, (size, size, 1)).astype(np.float32)
    return (first + (last - first) * share + noise).clip(0, 255).astype(np.uint8)
