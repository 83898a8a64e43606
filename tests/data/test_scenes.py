"""Composed scenes: boxes, names and pixels that agree, and the same scene each time."""

import numpy as np

from foveate.data.images.scenes import Scenes, Sprite, crop_to_visible


def solid(name: str, height: int, width: int, colour: tuple[int, int, int]) -> Sprite:
    """An opaque rectangle of one colour."""
    pixels = np.full((height, width, 4), (*colour, 255), np.uint8)
    return Sprite(name, f"{name}-class", "shapes", (pixels,))


TALL, WIDE = solid("tall", 23, 11, (255, 0, 0)), solid("wide", 7, 19, (0, 255, 0))


def test_boxes_hold_exactly_the_drawings() -> None:
    for scene in Scenes([TALL], first=3, count=29, size=97, most=1):
        pixels = np.asarray(scene.draw())
        assert pixels.shape == (97, 97, 3)
        (thing,) = scene.things
        left, top, right, bottom = thing.box
        inside = np.zeros((97, 97), bool)
        inside[top:bottom, left:right] = True
        red = (pixels == (255, 0, 0)).all(-1)
        assert red[inside].all()
        assert red[~inside].mean() < 0.01  # the background may be almost red by chance
        assert 27 <= bottom - top <= 65
        assert abs((bottom - top) * 11 / 23 - (right - left)) <= 1


def test_a_scene_follows_from_its_number() -> None:
    scenes, later = Scenes([TALL, WIDE], 0, 13), Scenes([TALL, WIDE], 5, 3)
    assert list(later) == [scenes[place] for place in (5, 6, 7)]
    assert scenes[-1] == scenes[12]
    assert np.array_equal(later[1].draw(), scenes[6].draw())
    assert not np.array_equal(scenes[5].draw(), scenes[6].draw())


def test_things_hide_little_of_each_other_and_are_in_reading_order() -> None:
    counts = set()
    for scene in Scenes([TALL, WIDE], 0, 61, size=128):
        counts.add(len(scene.things))
        order = []
        for place, thing in enumerate(scene.things):
            left, top, right, bottom = thing.box
            order.append(((top + bottom) / 2 * 3 // 128, left + right))
            assert 0 <= left < right <= 128
            assert 0 <= top < bottom <= 128
            for other in scene.things[:place]:
                wide = min(right, other.box[2]) - max(left, other.box[0])
                high = min(bottom, other.box[3]) - max(top, other.box[1])
                areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (thing.box, other.box)]
                assert max(wide, 0) * max(high, 0) <= 0.1 * min(areas)
        assert order == sorted(order)
    assert counts == {1, 2, 3, 4, 5, 6}


def test_the_visible_part() -> None:
    pixels = np.zeros((13, 11, 4), np.uint8)
    assert crop_to_visible(pixels).size == 0
    pixels[2:5, 7, 3] = 200
    pixels[9, 3, 3] = 15  # too faint to see
    assert crop_to_visible(pixels).shape == (3, 1, 4)
