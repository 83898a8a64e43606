"""Captions of scenes: names in reading order, relations, and where each name's box is."""

import numpy as np

from foveate.data.images.emoji_vocabulary import FRENCH, NAMES, is_held_out
from foveate.data.images.scenes import Scene, Sprite, Thing
from foveate.data.sources import emoji_captions
from foveate.data.sources.emoji_captions import describe, has_held_out_pair, neighbours, open_held_out

PIXELS = np.full((4, 4, 4), 255, np.uint8)


def thing(name: str, *box: int) -> Thing:
    return Thing(Sprite(name, "category", "group", (PIXELS,)), 0, box)  # type: ignore[arg-type]


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


def test_captions_in_french() -> None:
    assert {*FRENCH} == {*NAMES}
    found = describe(SCENE, "fr")
    assert found.captions == ("pomme rouge à gauche de chien au-dessus de clé",)
    assert [found.captions[0][one.start : one.end] for one in found.regions] == ["pomme rouge", "chien", "clé"]
    plane = Scene(9, 60, (SCENE.things[0], thing("airplane", 30, 16, 36, 22)))
    (caption,) = describe(plane, "fr").captions
    assert caption == "pomme rouge à gauche d'avion"
    assert caption[describe(plane, "fr").regions[1].start :] == "avion"


def test_pairs_and_a_vendor_are_held_out(monkeypatch) -> None:
    styles = [np.full((4, 4, 4), shade, np.uint8) for shade in (100, 200)]
    drawings = [Sprite(name, "category", "group", tuple(styles)) for name in NAMES]
    monkeypatch.setattr(emoji_captions, "scene_drawings", lambda before_fetch: drawings)
    monkeypatch.setattr(emoji_captions, "PARTS", {"train": (0, 40), "dev": (1_000, 5), "test": (2_000, 0)})
    monkeypatch.setattr(emoji_captions, "EACH", 4)
    splits = open_held_out(lambda *args: None)
    train, test = splits.train, splits.test
    assert [len(train), len(splits.dev), len(test)] == [40, 5, 12]
    assert [one.kind for one in test] == [*["seen"] * 4, *["new pair"] * 4, *["other vendor"] * 4]
    scenes = {one.kind: one.read.__self__ for one in test}
    assert has_held_out_pair(scenes["new pair"])
    assert not any(has_held_out_pair(one.read.__self__) for one in train)
    assert {shade for one in train for shade in shades(one)} == {100}
    assert {shade for one in [*test][8:] for shade in shades(one)} == {200}
    assert 0.08 < np.mean([is_held_out(one, other) for one in NAMES for other in NAMES]) < 0.12


def shades(one) -> set[int]:
    return {int(each.drawing.styles[each.style].max()) for each in one.read.__self__.things}
