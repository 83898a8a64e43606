"""Scenes of one to six emoji with captions: "dog left of red apple above key". Boxes of all that is named are known.

Captions are in English or in French. Two vendors draw each emoji; a source of its own holds one of them out, and pairs
of things.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from typing import Literal

from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage, Region
from foveate.data.images.emoji_vocabulary import FRENCH, NAMES, is_held_out
from foveate.data.images.scenes import Scene, Scenes, Sprite, Thing
from foveate.data.sources.cache import BeforeFetch
from foveate.data.sources.emoji_images import LICENCE, SIZE, open_drawings
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits

SIDE, SIDES, MOST = 64, (16, 24), 6
"""Pixels of a scene, pixels of the things in it, and how many there are at most."""

PARTS = {"train": (0, 20_000), "dev": (1_000_000, 2_000), "test": (2_000_000, 2_000)}
"""The number of the first scene of each part, and how many scenes it has."""

Language = Literal["en", "fr"]

RELATIONS = {"en": ("left of", "above"), "fr": ("à gauche de", "au-dessus de")}

HELD_OUT = {"seen": 0, "new pair": 0, "other vendor": 1}
"""The kinds of test images where something is held out, each with the vendor of its drawings."""

EACH = 700
"""Test images of each kind."""


def open_emoji_captions(before_fetch: BeforeFetch, language: Language = "en") -> Splits[Dataset[CaptionedImage]]:
    """20,000 scenes to learn from, 2,000 to validate on and 2,000 to test on."""
    drawings = scene_drawings(before_fetch)
    parts = {name: CaptionedScenes(scenes_of(drawings, name), language) for name in PARTS}
    name = "emoji-captions" if language == "en" else f"emoji-captions-{language}"
    return Splits(*(Dataset(f"{name}.{part}", scenes, "images") for part, scenes in parts.items()))


def open_held_out(before_fetch: BeforeFetch) -> Splits[Dataset[CaptionedImage]]:
    """20,000 scenes by one vendor, none of which has a pair that is held out, 2,000 more to validate on; to test on 700
    such scenes, 700 with such a pair, and 700 by the other vendor."""
    drawings = scene_drawings(before_fetch)
    vendors = [[replace(one, styles=one.styles[vendor : vendor + 1]) for one in drawings] for vendor in range(2)]
    found: dict[str, list[CaptionedImage]] = {}
    for part in ("train", "dev"):
        found[part] = _first_scenes(vendors[0], part, PARTS[part][1], with_pair=False)
    found["test"] = [
        replace(image, kind=kind)
        for kind, vendor in HELD_OUT.items()
        for image in _first_scenes(vendors[vendor], "test", EACH, with_pair=kind == "new pair")
    ]
    return Splits(*(Dataset(f"emoji-captions-held-out.{name}", images, "images") for name, images in found.items()))


def _first_scenes(drawings: Sequence[Sprite], part: str, wanted: int, with_pair: bool) -> list[CaptionedImage]:
    """The first scenes of a part that have a pair which is held out, or the first that have none."""
    found: list[CaptionedImage] = []
    for scene in _endless(drawings, PARTS[part][0]):
        if has_held_out_pair(scene) == with_pair:
            found.append(describe(scene))
            if len(found) == wanted:
                break
    return found


def _endless(drawings: Sequence[Sprite], first: int) -> Iterator[Scene]:
    for begin in count(first, 1_000):
        yield from Scenes(drawings, begin, 1_000, SIDE, SIDES, MOST)


def has_held_out_pair(scene: Scene) -> bool:
    """Returns whether two things that follow each other in the caption are a pair that is held out."""
    return any(is_held_out(one.drawing.name, other.drawing.name) for one, other in pairwise(scene.things))


def scene_drawings(before_fetch: BeforeFetch) -> list[Sprite]:
    """The drawings of the few emoji that scenes show."""
    return [drawing for drawing in open_drawings(before_fetch) if drawing.name in NAMES]


def scenes_of(drawings: Sequence[Sprite], part: str) -> Scenes:
    """The scenes of a part: train, dev or test."""
    first, count = PARTS[part]
    return Scenes(drawings, first, count, SIDE, SIDES, MOST)


class CaptionedScenes(Sequence[CaptionedImage]):
    """Scenes with captions, laid out when they are first asked for, and drawn whenever they are looked at."""

    def __init__(self, scenes: Scenes, language: Language = "en") -> None:
        self._scenes, self._language = scenes, language
        self._known: dict[int, CaptionedImage] = {}

    def __len__(self) -> int:
        return len(self._scenes)

    def __getitem__(self, number: int) -> CaptionedImage:  # type: ignore[override]
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        if number not in self._known:
            self._known[number] = describe(self._scenes[number], self._language)
        return self._known[number]


def describe(scene: Scene, language: Language = "en") -> CaptionedImage:
    """A scene with its caption: all names in reading order, with the relation of each to the one before."""
    caption, regions = "", []
    before: Thing | None = None
    for thing in scene.things:
        if before is not None:
            caption += f" {relation(before, thing, scene.size, language)} "
        name = thing.drawing.name if language == "en" else FRENCH[thing.drawing.name]
        if before is not None and language == "fr" and name[0] in "aeéiou":
            caption = f"{caption.removesuffix('e ')}'"  # d'avion
        start = len(caption)
        caption += name
        left, top, right, bottom = (part / scene.size for part in thing.box)
        regions.append(Region(start, len(caption), (left, top, right, bottom)))
        before = thing
    place = f"scene {scene.number}"
    return CaptionedImage(place, (caption,), scene.draw, tuple(regions), identity=str(scene.number))


def relation(one: Thing, other: Thing, size: int, language: Language = "en") -> str:
    """Returns how two things in reading order stand to each other: those in the same third of the height are in one
    row."""
    return RELATIONS[language][row_of(one, size) != row_of(other, size)]


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

FRENCH_SOURCE = Source(
    name="emoji-captions-fr",
    tasks=("caption",),
    about="the same scenes with captions in French: chien à gauche de pomme rouge au-dessus de clé",
    size=SIZE,
    licence=LICENCE,
    open=partial(open_emoji_captions, language="fr"),
)

HELD_OUT_SOURCE = Source(
    name="emoji-captions-held-out",
    tasks=("caption",),
    about="such scenes by one vendor without some pairs; tests have these pairs, and the other vendor's drawings",
    size=SIZE,
    licence=LICENCE,
    open=open_held_out,
)
