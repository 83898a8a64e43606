"""Questions about a scene by hand, and what is held out."""

import numpy as np

from foveate.data.images.emoji_vocabulary import NAMES
from foveate.data.images.scenes import Scene, Sprite, Thing
from foveate.data.sources.emoji_questions import NEW, ask, ask_all, is_new, questions, with_questions

PIXELS = np.full((4, 4, 4), 255, np.uint8)


def thing(name: str, *box: int) -> Thing:
    return Thing(Sprite(name, "category", "group", (PIXELS,)), 0, box)  # type: ignore[arg-type]


def scenes(count: int) -> list[Scene]:
    """A red apple left of a dog, and two keys below; the number alone decides what is asked."""
    things = thing("red apple", 0, 0, 10, 10), thing("dog", 30, 0, 40, 10)
    keys = thing("key", 0, 50, 10, 60), thing("key", 30, 50, 40, 60)
    return [Scene(number, 60, (*things, *keys)) for number in range(count)]


def test_every_question_has_its_answer() -> None:
    found = {(one.question, one.answer) for scene in scenes(200) for one in ask(scene)}
    assert ("how many things are there?", "4") in found
    assert {pair for pair in found if "right of" in pair[0]} == {("what is right of the red apple?", "dog")}
    assert {pair for pair in found if "left of" in pair[0]} == {("what is left of the dog?", "red apple")}
    assert {pair for pair in found if "colour" in pair[0]} == {("what colour is the apple?", "red")}
    there = {question for question, answer in found if answer == "yes"}
    assert there == {"is there a red apple?", "is there a dog?", "is there a key?"}
    assert {question for question, answer in found if answer == "no"}.isdisjoint(there)
    assert "is there an umbrella?" in {question for question, answer in found if answer == "no"}


def test_the_box_is_that_of_the_answer() -> None:
    (found,) = {one.box for scene in scenes(50) for one in ask(scene) if one.question == "what is left of the dog?"}
    assert found == (0, 0, 10 / 60, 10 / 60)


def test_a_pair_is_held_out_whichever_of_both_is_asked_for() -> None:
    pairs = [(a, b) for a in NAMES for b in NAMES]
    new = [pair for pair in pairs if is_new(*pair)]
    assert 0.08 < len(new) / len(pairs) < 0.12
    left, right = next((a, b) for a, b in new if a != b)
    scene = Scene(1, 60, (thing(left, 0, 0, 10, 10), thing(right, 30, 0, 40, 10)))
    asked = [one for number in range(9) for one in ask(Scene(number, 60, scene.things)) if " of the " in one.question]
    assert {one.kind for one in asked} == {NEW}
    assert {one.question.split()[2] for one in asked} == {"left", "right"}


def test_the_questions_of_a_scene_as_captions() -> None:
    """One of two keys is not asked about, and a scene without neighbours and colours has no question."""
    (scene,) = scenes(1)
    found = with_questions(scene)
    assert found is not None
    assert found.captions == (
        "what is right of the red apple?",
        "what is left of the dog?",
        "what colour is the apple?",
    )
    assert with_questions(Scene(0, 60, (thing("dog", 30, 0, 40, 10),))) is None


def test_training_asks_more_of_a_scene_but_nothing_about_pairs_that_are_held_out() -> None:
    (scene,) = scenes(1)
    found = ask_all(scene)
    kinds = [one.kind for one in found]
    assert kinds.count("presence") == 4
    assert [one.answer for one in found if one.kind == "presence"] == ["yes", "yes", "no", "no"]
    assert kinds.count("relation") + kinds.count(NEW) == 2  # of the dog and of the apple: each key has another
    left, right = next((a, b) for a in NAMES for b in NAMES if a != b and is_new(a, b))
    held_out = [Scene(1, 60, (thing(left, 0, 0, 10, 10), thing(right, 30, 0, 40, 10)))]
    assert NEW not in {one.kind for one in questions(held_out, learn=True)}
    assert NEW in {one.kind for number in range(9) for one in questions([Scene(number, 60, held_out[0].things)], False)}
