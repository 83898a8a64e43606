"""Scenes of one to six emoji with captions: "dog left of red apple above key". Boxes of all that is named are known."""

from collections.abc import Sequence
from itertools import pairwise

from foveate.data.captions import CaptionedImage, Region
from foveate.data.dataset import Dataset
from foveate.data.emoji_vocabulary import NAMES
from foveate.data.scenes import Drawing, Scene, Scenes, Thing
from foveate.data.sources.cache import BeforeFetch
from foveate.data.sources.emoji_images import LICENCE, SIZE, open_drawings
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits

SIDE, SIDES, MOST = 64, (16, 24), 6
"""Pixels of a scene, pixels of the things in it, and how many there are at most."""

PARTS = {"train": (0, 20_000), "dev": (1_000_000, 2_000), "test": (2_000_000, 2_000)}
"""The number of the first scene of each part, and how many scenes it has."""


def open_emoji_captions(before_fetch: BeforeFetch) -> Splits[Dataset[CaptionedImage]]:
    """20,000 scenes to learn from, 2,000 to validate on and 2,000 to test on."""
    drawings = scene_drawings(before_fetch)
    parts = {name: CaptionedScenes(scenes_of(drawings, name)) for name in PARTS}
    return Splits(*(Dataset(f"emoji-captions.{name}", scenes, "images") for name, scenes in parts.items()))


def scene_drawings(before_fetch: BeforeFetch) -> list[Drawing]:
    """The drawings of the few emoji that scenes show."""
    return [drawing for drawing in open_drawings(before_fetch) if drawing.name in NAMES]


def scenes_of(drawings: Sequence[Drawing], part: str) -> Scenes:
    """The scenes of a part: train, dev or test."""
    first, count = PARTS[part]
    return Scenes(drawings, first, count, SIDE, SIDES, MOST)


class CaptionedScenes(Sequence[CaptionedImage]):
    """Scenes with captions, laid out when they are first asked for, and drawn whenever they are looked at."""

    def __init__(self, scenes: Scenes) -> None:
        self._scenes = scenes
        self._known: dict[int, CaptionedImage] = {}

    def __len__(self) -> int:
        return len(self._scenes)

    def __getitem__(self, number: int) -> CaptionedImage:  # type: ignore[override]
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]  # type: ignore[return-value]
        number = range(len(self))[number]
        if number not in self._known:
            self._known[number] = describe(self._scenes[number])
        return self._known[number]


def describe(scene: Scene) -> CaptionedImage:
    """A scene with its caption: all names in reading order, with the relation of each to the one before."""
    caption, regions = "", []
    before: Thing | None = None
    for thing in scene.things:
        if before is not None:
            caption += f" {relation(before, thing, scene.size)} "
        start = len(caption)
        caption += thing.drawing.name
        left, top, right, bottom = (part / scene.size for part in thing.box)
        regions.append(Region(start, len(caption), (left, top, right, bottom)))
        before = thing
    place = f"scene {scene.number}"
    return CaptionedImage(place, (caption,), scene.draw, tuple(regions), identity=str(scene.number))


def relation(one: Thing, other: Thing, size: int) -> str:
    """How two things in reading order stand to each other: those in the same third of the height are in one row."""
    return "left of" if row_of(one, size) == row_of(other, size) else "above"


def row_of(thing: Thing, size: int) -> int:
    """The third of the height in which the middle of a thing is: 0, 1 or 2."""
    return 3 * (thing.box[1] + thing.box[3]) // (2 * size)


def neighbours(scene: Scene) -> list[tuple[Thing, Thing]]:
    """Things that stand side by side in one row, from left to right."""
    return [(a, b) for a, b in pairwise(scene.things) if row_of(a, scene.size) == row_of(b, scene.size)]


SOURCE = Source(
    name="emoji-captions",
    tasks=("caption",),
    about="24,000 scenes of 1 to 6 emoji, 64 x 64, captions with relations: learned in minutes",
    size=SIZE,
    licence=LICENCE,
    open=open_emoji_captions,
)
