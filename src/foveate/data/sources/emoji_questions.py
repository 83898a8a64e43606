"""Questions about scenes of emoji: what stands beside what, colours, how many things there are, whether one is there.

To learn from, each scene has all questions about neighbours and colours, and up to four about presence; to measure on,
at most one of each kind. One in ten pairs of neighbours is asked for in dev and test data only.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage
from foveate.data.images.emoji_vocabulary import COLOURED, NAMES, is_held_out
from foveate.data.images.questions import ImageQuestion
from foveate.data.images.scenes import Scene, Thing
from foveate.data.sources.cache import BeforeFetch
from foveate.data.sources.emoji_captions import neighbours, scene_drawings, scenes_of
from foveate.data.sources.emoji_images import LICENCE, SIZE
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Splits

COUNT = "how many things are there?"

NEW = "new relation"
"""The kind of questions about pairs that training never asks for."""


PRESENCE = 2
"""To learn from: at most this many things of a scene are asked for, and as many that are not there."""


def open_emoji_questions(before_fetch: BeforeFetch) -> Splits[Dataset[ImageQuestion]]:
    """Questions about 20,000 scenes to learn from, about 2,000 to validate on and about 2,000 to test on."""
    drawings = scene_drawings(before_fetch)
    parts = {part: questions(scenes_of(drawings, part), part == "train") for part in ("train", "dev", "test")}
    return Splits(*(Dataset(f"emoji-questions.{part}", found, "questions") for part, found in parts.items()))


def questions(scenes: Sequence[Scene], learn: bool) -> list[ImageQuestion]:
    """The questions about some scenes: many to learn from, none of them about a pair that is held out; or a few to
    measure on."""
    if learn:
        return [question for scene in scenes for question in ask_all(scene) if question.kind != NEW]
    return [question for scene in scenes for question in ask(scene)]


def open_question_captions(before_fetch: BeforeFetch) -> Splits[Dataset[CaptionedImage]]:
    """The same scenes with the questions about relations and colours that each can answer, as its captions."""
    drawings = scene_drawings(before_fetch)
    found = []
    for part in ("train", "dev", "test"):
        scenes = [image for scene in scenes_of(drawings, part) if (image := with_questions(scene)) is not None]
        captions = f"{sum(len(one.captions) for one in scenes):,} questions"
        found.append(Dataset(f"emoji-question-captions.{part}", scenes, "images", [captions]))
    return Splits(*found)


def with_questions(scene: Scene) -> CaptionedImage | None:
    """A scene with all its questions; None if it has none."""
    alone = _alone([thing.drawing.name for thing in scene.things])
    asked = [one.question for one in (*_relations(scene, alone), *_of_colour(scene))]
    if not asked:
        return None
    number = str(scene.number)
    return CaptionedImage(f"scene {number}", tuple(dict.fromkeys(asked)), scene.draw, identity=number)


def is_new(left: str, right: str) -> bool:
    """Returns whether a pair of neighbours is one of those that training never asks for."""
    return is_held_out(left, right)


def ask(scene: Scene) -> list[ImageQuestion]:
    """Questions about a scene: at most one of each kind."""
    generator = np.random.default_rng(scene.number)
    names = [thing.drawing.name for thing in scene.things]
    found = [_of_count(scene)]
    found += _of_relation(scene, _alone(names), generator)
    found += _of_colour(scene)
    there = bool(generator.integers(2))
    pool = sorted(set(names)) if there else [name for name in NAMES if name not in names]
    found.append(_of_presence(scene, pool[int(generator.integers(len(pool)))]))
    return found


def ask_all(scene: Scene) -> list[ImageQuestion]:
    """All questions about a scene, but of presence only some, half of them about what is not there."""
    generator = np.random.default_rng(scene.number)
    names = [thing.drawing.name for thing in scene.things]
    there = generator.permutation(sorted(set(names)))[:PRESENCE].tolist()
    others = generator.permutation([name for name in NAMES if name not in names])[: len(there)].tolist()
    found = [_of_count(scene), *_relations(scene, _alone(names)), *_of_colour(scene)]
    return [*found, *(_of_presence(scene, name) for name in (*there, *others))]


def _alone(names: list[str]) -> set[str]:
    """The names that occur once."""
    return {name for name, count in Counter(names).items() if count == 1}


def _of_count(scene: Scene) -> ImageQuestion:
    return _question(scene, COUNT, str(len(scene.things)), "count")


def _of_presence(scene: Scene, name: str) -> ImageQuestion:
    """Returns whether something is there."""
    thing = next((thing for thing in scene.things if thing.drawing.name == name), None)
    article = "an" if name[0] in "aeiou" else "a"
    return _question(scene, f"is there {article} {name}?", "no" if thing is None else "yes", "presence", thing)


def _of_relation(scene: Scene, alone: set[str], generator: np.random.Generator) -> list[ImageQuestion]:
    """Asks what stands left or right of something, the only one with its name."""
    found = _relations(scene, alone)
    return [found[int(generator.integers(len(found)))]] if found else []


def _relations(scene: Scene, alone: set[str]) -> list[ImageQuestion]:
    """All questions of what stands left or right of something, the only one with its name."""
    pairs = [(one, other, "right") for one, other in neighbours(scene)]
    pairs += [(other, one, "left") for one, other in neighbours(scene)]
    found = []
    for named, answer, side in pairs:
        one, other = named.drawing.name, answer.drawing.name
        if one in alone:
            kind = NEW if (is_new(one, other) if side == "right" else is_new(other, one)) else "relation"
            found.append(_question(scene, f"what is {side} of the {one}?", other, kind, answer))
    return found


def _of_colour(scene: Scene) -> list[ImageQuestion]:
    """The colour of the only heart, apple or book."""
    for noun in COLOURED:
        things = [thing for thing in scene.things if thing.drawing.name.endswith(f" {noun}")]
        if len(things) == 1:
            colour = things[0].drawing.name.split()[0]
            return [_question(scene, f"what colour is the {noun}?", colour, "colour", things[0])]
    return []


def _question(scene: Scene, question: str, answer: str, kind: str, seen: Thing | None = None) -> ImageQuestion:
    box = None
    if seen is not None:
        left, top, right, bottom = (part / scene.size for part in seen.box)
        box = left, top, right, bottom
    place = f"scene {scene.number}"
    return ImageQuestion(place, question, answer, scene.draw, place, kind, box, composed=True)


SOURCE = Source(
    name="emoji-questions",
    tasks=("answer",),
    about="60,000 questions about scenes of emoji: relations, colours, counts, presence; from the same packages",
    size=SIZE,
    licence=LICENCE,
    open=open_emoji_questions,
)

AS_CAPTIONS = Source(
    name="emoji-question-captions",
    tasks=("caption",),
    about="the same scenes with the questions that each can answer: to learn to ask about an image",
    size=SIZE,
    licence=LICENCE,
    open=open_question_captions,
)
