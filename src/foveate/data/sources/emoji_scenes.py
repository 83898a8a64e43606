"""Scenes of emoji with exact boxes, to learn detection; the emoji of the test scenes are in no other scene."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from foveate.data.dataset import Dataset
from foveate.data.images.boxes import BoxedImage
from foveate.data.images.masks import MaskedImage
from foveate.data.images.scenes import Scene, Scenes, Sprite
from foveate.data.sources.cache import BeforeFetch
from foveate.data.sources.emoji_images import LICENCE, SIZE, is_dev, is_test, open_drawings
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits

TRAIN, DEV, TEST = 16_000, 500, 1_000
"""How many scenes there are."""


class BoxedScenes(Sequence[BoxedImage]):
    """Scenes as images with boxes, each composed when it is asked for. The labels are subcategories, or groups."""

    def __init__(self, scenes: Scenes, by_group: bool = False) -> None:
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
        names = scene_identity(scene)
        boxes = tuple(tuple(map(float, thing.box)) for thing in things)
        return BoxedImage(f"scene {scene.number}", boxes, labels, scene.draw, lambda: names)  # type: ignore[arg-type]


class MaskedScenes(Sequence[MaskedImage]):
    """Scenes as images with the group that each pixel shows, or the background."""

    def __init__(self, scenes: Scenes, labels: tuple[str, ...]) -> None:
        """`labels` are the background and the groups."""
        self._scenes, self._labels = scenes, labels
        self._numbers = {label: number for number, label in enumerate(labels)}

    def __len__(self) -> int:
        return len(self._scenes)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        scene = self._scenes[place]
        identity, mask = scene_identity(scene), partial(scene.mask, self._numbers)
        return MaskedImage(f"scene {scene.number}", self._labels, scene.draw, mask, lambda: identity)


def scene_identity(scene: Scene) -> bytes:
    """What is in a scene, which stands for its pixels."""
    return "".join(f"{thing.drawing.name}\0{thing.style}\0" for thing in scene.things).encode()


def open_emoji_scenes(
    before_fetch: BeforeFetch, make: Callable[[Scenes], Sequence[Any]] = BoxedScenes
) -> Splits[Dataset[Any]]:
    """16,000 scenes to train on, 500 to validate on and 1,000 to test on, of different emoji: every twentieth is for
    validation, every fifth for the test. `make` makes images with boxes of them, or others."""
    parts: dict[str, list[Sprite]] = {"train": [], "dev": [], "test": []}
    for number, drawing in enumerate(open_drawings(before_fetch)):
        parts["test" if is_test(number) else "dev" if is_dev(number) else "train"].append(drawing)
    sets, first = [], 0
    for (part, drawings), count in zip(parts.items(), (TRAIN, DEV, TEST), strict=True):
        scenes = make(Scenes(drawings, first, count))
        notes = [f"1 to 6 of {len(drawings):,} emoji in each"]
        sets.append(Dataset(f"emoji-scenes.{part}", scenes, "images", notes))
        first += count
    return Splits(*sets)


def open_groups(before_fetch: BeforeFetch) -> Splits[Dataset[BoxedImage]]:
    """The same with the nine groups as labels."""
    return open_emoji_scenes(before_fetch, partial(BoxedScenes, by_group=True))


def open_masks(before_fetch: BeforeFetch) -> Splits[Dataset[MaskedImage]]:
    """The same with the group of each pixel."""
    groups = dict.fromkeys(drawing.group for drawing in open_drawings(before_fetch))
    return open_emoji_scenes(before_fetch, partial(MaskedScenes, labels=("background", *groups)))


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

MASKS = Source(
    name="emoji-scenes-masks",
    tasks=("segment",),
    about="the same scenes with the group that each pixel shows, or the background: ten classes",
    size=SIZE,
    licence=LICENCE,
    open=open_masks,
)
