"""Captions of scenes: names in reading order, relations, and where each name's box is."""

import numpy as np

from foveate.data.scenes import Drawing, Scene, Thing
from foveate.data.sources.emoji_captions import describe, neighbours

PIXELS = np.full((4, 4, 4), 255, np.uint8)


def thing(name: str, *box: int) -> Thing:
    return Thing(Drawing(name, "category", "group", (PIXELS,)), 0, box)  # type: ignore[arg-type]


# middles at the heights 10 and 19, then 31, of 60: the thirds end at 20 and 40
SCENE = Scene(7, 60, (thing("red apple", 0, 5, 12, 15), thing("dog", 30, 16, 36, 22), thing("key", 3, 26, 9, 36)))


def test_a_caption_names_all_things_and_how_they_stand() -> None:
    found = describe(SCENE)
    assert found.captions == ("red apple left of dog above key",)
    assert [found.captions[0][one.start : one.end] for one in found.regions] == ["red apple", "dog", "key"]
    assert found.regions[1].box == (0.5, 16 / 60, 0.6, 22 / 60)
    assert found.place == "scene 7"
    assert found.read().size == (60, 60)


def test_neighbours_stand_in_one_row() -> None:
    assert [(one.drawing.name, other.drawing.name) for one, other in neighbours(SCENE)] == [("red apple", "dog")]


def test_two_scenes_with_one_caption_are_two_examples() -> None:
    other = Scene(8, 60, SCENE.things)
    assert describe(other).captions == describe(SCENE).captions
    assert describe(other).content() != describe(SCENE).content()
