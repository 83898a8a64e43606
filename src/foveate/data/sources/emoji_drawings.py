"""Small drawings of one to three emoji on white with captions: "dog left of red apple above key".

Each emoji fills one of four quarters, as one vendor draws it. Pairs of emoji that are held out occur together in no
drawing to learn from.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage
from foveate.data.images.scenes import SEED, Scene, Sprite, Thing
from foveate.data.sources.cache import BeforeFetch
from foveate.data.sources.emoji_captions import describe, scene_drawings
from foveate.data.sources.emoji_images import LICENCE, SIZE
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits

SIDE, LONGEST, STEP, MOST = 32, 16, 2, 3
"""Pixels of a drawing, of the longer side of an emoji, of the grid that emoji stand on, and the most emoji."""

WHITE = 255, 255, 255

PARTS = {"train": (3_000_000, 20_000), "dev": (4_000_000, 1_000), "test": (5_000_000, 1_000)}
"""The number of the first drawing of each part, and how many drawings it has."""


def open_emoji_drawings(before_fetch: BeforeFetch) -> Splits[Dataset[CaptionedImage]]:
    """20,000 drawings to learn from. The 1,000 to validate on and the 1,000 to test on have two or three emoji, two of
    which never occur together in the others."""
    drawings = scene_drawings(before_fetch)
    parts = {name: DrawnScenes(drawings, name, *PARTS[name]) for name in PARTS}
    return Splits(*(Dataset(f"emoji-drawings.{name}", scenes, "images") for name, scenes in parts.items()))


def pair_part(one: int, other: int) -> str:
    """The part that two emoji, by their numbers, may occur together in: one pair in ten is for dev, one for test."""
    return {0: "dev", 1: "test"}.get((min(one, other) + 7 * max(one, other)) % 10, "train")


class DrawnScenes(Sequence[CaptionedImage]):
    """Drawings of a part with captions, composed when they are asked for."""

    def __init__(self, drawings: Sequence[Sprite], part: str, first: int, count: int) -> None:
        self._drawings, self._part, self._first, self._count = drawings, part, first, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> CaptionedImage:  # type: ignore[override]
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(self._count))]
        if not -self._count <= place < self._count:
            raise IndexError(place)
        number = self._first + place % self._count
        return describe(compose(self._drawings, self._part, number))


def compose(drawings: Sequence[Sprite], part: str, number: int) -> Scene:
    """The drawing of a number: emoji in different quarters, no two of which belong to another part."""
    generator = np.random.default_rng((SEED, number, 2))
    count = int(generator.integers(1 if part == "train" else 2, MOST + 1))
    quarters = sorted(generator.permutation(4)[:count].tolist())
    chosen = _choose(len(drawings), part, count, generator)
    things = [
        Thing(drawing, 0, _place(drawing.styles[0].shape, quarter))
        for drawing, quarter in zip((drawings[one] for one in chosen), quarters, strict=True)
    ]
    return Scene(number, SIDE, tuple(things), WHITE)


def _choose(known: int, part: str, count: int, generator: np.random.Generator) -> list[int]:
    """Numbers of different emoji, whose pairs are all of the training part, or else at least one of the given part."""
    while True:
        chosen = generator.permutation(known)[:count].tolist()
        parts = {pair_part(one, other) for one, other in combinations(chosen, 2)}
        if parts <= {"train"} if part == "train" else part in parts and parts <= {part, "train"}:
            return chosen


def _place(shape: tuple[int, ...], quarter: int) -> tuple[int, int, int, int]:
    """A box of the drawing's proportions in the middle of a quarter of the scene, its corner on the grid."""
    height, width = (max(1, round(LONGEST * part / max(shape[:2]))) for part in shape[:2])
    down, right = ((SIDE // 2 - part) // (2 * STEP) * STEP for part in (height, width))
    top, left = SIDE // 2 * (quarter // 2) + down, SIDE // 2 * (quarter % 2) + right
    return left, top, left + width, top + height


SOURCE = Source(
    name="emoji-drawings",
    tasks=("draw", "match-image", "caption"),
    about="22,000 drawings of 1 to 3 emoji on white, 32 x 32, captions with relations: learned in 20 minutes",
    size=SIZE,
    licence=LICENCE,
    open=open_emoji_drawings,
)
