"""Scenes of emoji with exact boxes, to learn detection; the emoji of the test scenes are in no other scene."""

from collections.abc import Sequence
from typing import Any

from foveate.data.dataset import Dataset
from foveate.data.images.boxes import BoxedImage
from foveate.data.images.scenes import Drawing, Scene, Scenes
from foveate.data.sources.cache import BeforeFetch
from foveate.data.sources.emoji_images import LICENCE, SIZE, is_dev, is_test, open_drawings
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits

TRAIN, DEV, TEST = 16_000, 500, 1_000
"""How many scenes there are."""


class BoxedScenes(Sequence[BoxedImage]):
    """Scenes as images with boxes, each composed when it is asked for. The labels are subcategories, or groups."""

    def __init__(self, scenes: Scenes, by_group: bool) -> None:
        self._scenes, self._by_group = scenes, by_group

    def __len__(self) -> int:
        return len(self._scenes)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        return self._boxed(self._scenes[place])

    def _boxed(self, scene: Scene) -> BoxedImage:
        things = scene.things
        labels = tuple(thing.drawing.group if self._by_group else thing.drawing.category for thing in things)
        names = "".join(f"{thing.drawing.name}\0{thing.style}\0" for thing in things)
        boxes = tuple(tuple(map(float, thing.box)) for thing in things)
        return BoxedImage(f"scene {scene.number}", boxes, labels, scene.draw, names.encode)  # type: ignore[arg-type]


def open_emoji_scenes(before_fetch: BeforeFetch, by_group: bool = False) -> Splits[Dataset[BoxedImage]]:
    """16,000 scenes to train on, 500 to validate on and 1,000 to test on, of different emoji: every twentieth is for
    validation, every fifth for the test."""
    parts: dict[str, list[Drawing]] = {"train": [], "dev": [], "test": []}
    for number, drawing in enumerate(open_drawings(before_fetch)):
        parts["test" if is_test(number) else "dev" if is_dev(number) else "train"].append(drawing)
    sets, first = [], 0
    for (part, drawings), count in zip(parts.items(), (TRAIN, DEV, TEST), strict=True):
        scenes = BoxedScenes(Scenes(drawings, first, count), by_group)
        notes = [f"1 to 6 of {len(drawings):,} emoji in each"]
        sets.append(Dataset(f"emoji-scenes.{part}", scenes, "images", notes))
        first += count
    return Splits(*sets)


def open_groups(before_fetch: BeforeFetch) -> Splits[Dataset[BoxedImage]]:
    """The same with the nine groups as labels."""
    return open_emoji_scenes(before_fetch, by_group=True)


SOURCE = Source(
    name="emoji-scenes",
    tasks=("detect",),
    about="16,000 scenes of 1 to 6 emoji with exact boxes, 98 classes (subcategories), composed when read",
    size=SIZE,
    licence=LICENCE,
    open=open_emoji_scenes,
)

GROUPS = Source(
    name="emoji-scenes-groups",
    tasks=("detect",),
    about="the same scenes with nine classes: food-drink, animals-nature, ...",
    size=SIZE,
    licence=LICENCE,
    open=open_groups,
)
