"""Drawn puppets in random poses, with the exact places of their joints, to learn keypoints: nothing is fetched.

A picture follows from its number alone. Puppets look at the viewer, so what is left of theirs is at the right.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import PIL.Image
from PIL import ImageDraw

from foveate.data.dataset import Dataset
from foveate.data.images.keypoints import Point, PosedImage
from foveate.data.sources.cache import BeforeFetch
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits

SEED = 61

TRAIN, DEV, TEST = 20_000, 500, 1_000
"""How many pictures there are."""

SIZE = 96
"""Height and width in pixels."""

FINER = 2
"""Pictures are drawn this many times as large, and then reduced."""

LIMBS = {"arm": ("shoulder", "elbow", "wrist"), "leg": ("hip", "knee", "ankle")}

NAMES = ("head", *(f"{side} {joint}" for joints in LIMBS.values() for joint in joints for side in ("left", "right")))
"""The points of each puppet."""

ATTACHED = {"arm": (0.33, 0.0), "leg": (0.2, 1.0)}
"""Where limbs begin, beside the spine and down from the neck, in lengths of the spine."""

LENGTHS = {"arm": (0.55, 0.5), "leg": (0.65, 0.6)}
"""Of the two parts of a limb."""

ANGLES = {"arm": ((-20, 150), (-30, 110)), "leg": ((-10, 60), (-70, 10))}
"""In degrees: how far limbs are raised to their side, and how far they are bent."""


class Puppets(Sequence[PosedImage]):
    """The pictures of the numbers from `first` on, each drawn when it is asked for."""

    def __init__(self, first: int, count: int) -> None:
        self._first, self._count = first, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        if not -self._count <= place < self._count:
            raise IndexError(place)
        number = self._first + place % self._count
        joints = pose(np.random.default_rng((SEED, number, 0)))
        inside = tuple(point if all(0 <= side < SIZE for side in point) else None for point in joints.values())
        return PosedImage(f"puppet {number}", NAMES, inside, lambda: draw(joints, number), str(number).encode)


def pose(generator: np.random.Generator) -> dict[str, Point]:
    """The place of each joint in pixels; some may be outside of the picture."""
    spine = SIZE * generator.uniform(0.2, 0.32)
    turn = np.radians(generator.uniform(-30, 30))
    neck = SIZE * generator.uniform(0.35, 0.65), SIZE * generator.uniform(0.28, 0.42)

    def at(across: float, down: float) -> Point:
        """A place in lengths of the spine from the neck, in pixels."""
        cos, sin = np.cos(turn), np.sin(turn)
        return neck[0] + spine * float(across * cos - down * sin), neck[1] + spine * float(across * sin + down * cos)

    found = {"head": at(0, -0.42)}
    for limb, joints in LIMBS.items():
        for side, name in ((1, "left"), (-1, "right")):
            across, down = side * ATTACHED[limb][0], ATTACHED[limb][1]
            angle = 0.0
            for joint, length, limits in zip(joints, (0.0, *LENGTHS[limb]), ((0, 0), *ANGLES[limb]), strict=True):
                angle += np.radians(generator.uniform(*limits))
                across, down = across + side * length * np.sin(angle), down + length * np.cos(angle)
                found[f"{name} {joint}"] = at(across, down)
    return {name: found[name] for name in NAMES}


def draw(joints: dict[str, Point], number: int) -> PIL.Image.Image:
    """The puppet before a few lines and disks, RGB."""
    generator = np.random.default_rng((SEED, number, 1))
    image = PIL.Image.new("RGB", (FINER * SIZE, FINER * SIZE), _colour(generator))
    canvas = ImageDraw.Draw(image)
    for _ in range(int(generator.integers(3, 9))):
        ends, width = generator.integers(0, FINER * SIZE, 4).tolist(), int(generator.integers(4, 16))
        canvas.line(ends, _colour(generator), width)
        left, top, size = (int(value) for value in generator.integers(0, FINER * SIZE, 3))
        canvas.ellipse((left, top, left + size // 4, top + size // 4), _colour(generator))
    large = {name: (FINER * across, FINER * down) for name, (across, down) in joints.items()}
    skin, cloth, trousers = (_colour(generator) for _ in range(3))
    thick = max(3, round(0.3 * abs(large["left shoulder"][0] - large["right shoulder"][0]) + 3))
    for limb, colour in (("leg", trousers), ("arm", skin)):
        for side in ("left", "right"):
            ends = [large[f"{side} {joint}"] for joint in LIMBS[limb]]
            canvas.line(ends, colour, thick, joint="curve")
            _disk(canvas, ends[-1], 0.7 * thick, skin)
    canvas.polygon([large[f"{side} {joint}"] for side, joint in CORNERS], cloth)
    across, down = large["head"]
    radius = 1.3 * thick
    _disk(canvas, (across, down), radius, skin)
    for sign in (-1, 1):
        _disk(canvas, (across + sign * radius / 2.5, down - radius / 5), radius / 6, (0, 0, 0))
    return image.resize((SIZE, SIZE), PIL.Image.Resampling.BOX)


CORNERS = (("left", "shoulder"), ("right", "shoulder"), ("right", "hip"), ("left", "hip"))
"""Of the body, in order."""


def _colour(generator: np.random.Generator) -> tuple[int, ...]:
    return tuple(generator.integers(0, 256, 3).tolist())


def _disk(canvas: ImageDraw.ImageDraw, centre: Point, radius: float, colour: tuple[int, ...]) -> None:
    across, down = centre
    canvas.ellipse((across - radius, down - radius, across + radius, down + radius), colour)


def open_puppets(before_fetch: BeforeFetch) -> Splits[Dataset[PosedImage]]:
    """20,000 pictures to train on, 500 to validate on and 1,000 to test on."""
    sets, first = [], 0
    for part, count in (("train", TRAIN), ("dev", DEV), ("test", TEST)):
        notes = [f"{len(NAMES)} points of each puppet"]
        sets.append(Dataset(f"puppets.{part}", Puppets(first, count), "images", notes))
        first += count
    return Splits(*sets)


SOURCE = Source(
    name="puppets",
    tasks=("keypoints",),
    about="20,000 drawn puppets with the places of their 13 joints, drawn when read; learned in minutes",
    size="0 MB",
    licence="none: drawn by foveate",
    open=open_puppets,
)
