"""Examples of every kind that tasks learn from, written as files: a task is tested by the forms that it reads and
writes, whatever its name is."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageDraw
import spoken_tones
import tiny_prose
import verdicts
import words

from foveate.forms.actions import WorldActions
from foveate.forms.blanks import ReadBlanks
from foveate.forms.boxes import Boxes
from foveate.forms.caption_match import CaptionedImages
from foveate.forms.class_images import ClassName
from foveate.forms.drawing import Caption
from foveate.forms.form import InputForm, OutputForm
from foveate.forms.image import FittedImage, ImageForm, SquareImage
from foveate.forms.keypoints import Keypoints
from foveate.forms.pixels import PixelImage
from foveate.forms.prose import ReadProse
from foveate.forms.question import ImageWithText, Question
from foveate.forms.reading import WordLine
from foveate.forms.reward import JudgedText
from foveate.forms.segments import Segments
from foveate.forms.sound import Sound
from foveate.forms.speech import SpokenText
from foveate.forms.tagged_words import TaggedWords
from foveate.forms.text import Text
from foveate.forms.text_pair import PairText
from foveate.forms.text_question import AskedText
from foveate.forms.text_vector import PairedText
from foveate.forms.translation import SourceText
from foveate.forms.tuned import PairTunedText, ReadTunedPrompt
from foveate.forms.walks import MapActions
from foveate.forms.world import Directions, LevelName
from foveate.forms.written import Written
from foveate.tasks.task import Task

COUNT = 24
"""Examples of each kind."""

NOT_TEXT = "caf\udce9"
"""An argument whose bytes are not UTF-8, as a shell gives it."""

COLOURS = {"red": (230, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 230)}


@dataclass(frozen=True)
class Made:
    """Examples of a task in files, and what models are asked that learned from them."""

    data: tuple[Path, ...]
    inputs: tuple[str, ...] = ()
    """Arguments of `foveate run`; by default the examples themselves."""
    look: str = ""
    """The input of a look; by default the first of the inputs."""
    flags: tuple[str, ...] = ()
    """Flags that `foveate run` needs."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the recipe that make the training short."""


def write(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    """A table."""
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def parallel_text(folder: Path) -> Made:
    return Made((write(folder / "pairs.tsv", [*dict.fromkeys(words.pairs(COUNT, 1))]),))


def labelled_text(folder: Path) -> Made:
    return Made((write(folder / "labelled.tsv", verdicts.examples(COUNT, 1)),))


def labelled_pairs(folder: Path) -> Made:
    firsts = [text for _, text in verdicts.examples(COUNT, 2)]
    rows = [(label, first, text) for first, (label, text) in zip(firsts, verdicts.examples(COUNT, 1), strict=True)]
    return Made((write(folder / "pairs.tsv", rows),))


def preferences(folder: Path) -> Made:
    found = verdicts.examples(4 * COUNT, 1)
    sides = [[text for label, text in found if label == wanted][:COUNT] for wanted in ("praise", "blame")]
    return Made((write(folder / "preferences.tsv", list(zip(*sides, strict=True))),))


def tagged_words(folder: Path) -> Made:
    kinds = {"the": "DET", "cat": "NOUN", "dog": "NOUN", "sees": "VERB", "hears": "VERB"}
    generator = random.Random(1)
    sentences = [["the", generator.choice(["cat", "dog"]), generator.choice(["sees", "hears"])] for _ in range(COUNT)]
    lines = "\n\n".join("\n".join(f"{word}\t{kinds[word]}" for word in sentence) for sentence in sentences)
    (folder / "tagged.tsv").write_text(lines + "\n")
    return Made((folder / "tagged.tsv",))


def prose(folder: Path) -> Made:
    paragraphs = [paragraph.text for paragraph in tiny_prose.prose(2 * COUNT, 1)]
    (folder / "prose.txt").write_text("\n\n".join(paragraphs) + "\n")
    return Made((folder / "prose.txt",))


def prose_with_blanks(folder: Path) -> Made:
    made = prose(folder)
    return Made(made.data, ("The ship [MASK] home.", "A sailor [MASK] a song."))


def text_questions(folder: Path) -> Made:
    rows = [
        (f"The cat is {cat}. The dog is {dog}.", f"What is the {asked}?", {"cat": cat, "dog": dog}[asked])
        for cat in COLOURS
        for dog in COLOURS
        for asked in ("cat", "dog")
    ]
    return Made((write(folder / "questions.tsv", rows),))


def square(path: Path, colour: str, side: int = 16) -> str:
    """A square on noise, as a file; its name."""
    pixels = np.random.default_rng(len(path.name)).integers(90, 140, (side, side, 3)).astype(np.uint8)
    pixels[side // 4 : -side // 4, side // 4 : -side // 4] = COLOURS[colour]
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(pixels).save(path)
    return path.name


def squares(folder: Path, side: int = 16) -> list[tuple[str, str]]:
    """Images in a folder: the name and the colour of each."""
    colours = [[*COLOURS][number % 3] for number in range(COUNT)]
    return [(square(folder / f"{number}.png", colour, side), colour) for number, colour in enumerate(colours)]


def labelled_images(folder: Path, side: int = 16) -> Made:
    for number in range(COUNT):
        colour = [*COLOURS][number % 3]
        square(folder / "images" / colour / f"{number}.png", colour, side)
    return Made((folder / "images",), settings={"size": side})


def small_images(folder: Path) -> Made:
    """Images that are drawn pixel by pixel."""
    return replace(labelled_images(folder), settings={"size": 8, "levels": 2})


def captioned_images(folder: Path) -> Made:
    rows = [(name, f"a {colour} square") for name, colour in squares(folder)]
    return Made((write(folder / "captions.tsv", rows),), settings={"size": 16})


def image_questions(folder: Path) -> Made:
    rows = [(name, "what colour is it?", colour) for name, colour in squares(folder)]
    return Made((write(folder / "questions.tsv", rows),), settings={"size": 16})


def images_of_words(folder: Path) -> Made:
    rows = []
    for number in range(COUNT):
        word = "abc"[number % 3] + "ab"[number % 2]
        image = PIL.Image.new("L", (40, 16), 255)
        PIL.ImageDraw.Draw(image).text((3, 2), word, fill=0)
        image.save(folder / f"{number}.png")
        rows.append((f"{number}.png", word))
    return Made((write(folder / "words.tsv", rows),), settings={"height": 16, "width": 40})


def coco(folder: Path, category: Mapping[str, Any], annotation: Mapping[str, Any]) -> Made:
    """Images with one object each."""
    names = [name for name, _ in squares(folder, 48)]
    table = {
        "categories": [{"id": 1, "name": "square", **category}],
        "images": [
            {"id": number, "file_name": name, "width": 48, "height": 48} for number, name in enumerate(names, 1)
        ],
        "annotations": [
            {"id": number, "image_id": number, "category_id": 1, "iscrowd": 0, "area": 576, **annotation}
            for number in range(1, COUNT + 1)
        ],
    }
    (folder / "coco.json").write_text(json.dumps(table))
    return Made((folder / "coco.json",), settings={"size": 48})


def boxed_images(folder: Path) -> Made:
    return coco(folder, {}, {"bbox": [12, 12, 24, 24]})


def posed_images(folder: Path) -> Made:
    return coco(folder, {"keypoints": ["left", "right"]}, {"keypoints": [12, 24, 2, 36, 24, 2], "num_keypoints": 2})


def masked_images(folder: Path) -> Made:
    mask = np.zeros((48, 48), np.uint8)
    mask[12:36, 12:36] = 1
    (folder / "masks").mkdir()
    for name, _ in squares(folder / "images", 48):
        PIL.Image.fromarray(mask).save(folder / "masks" / name)
    return Made((folder,), settings={"size": 48})


def labelled_sounds(folder: Path) -> Made:
    texts = spoken_tones.random_texts(COUNT, 1, longest=2)
    return Made((spoken_tones.write_table(folder, "sounds", texts, 1),))


def spoken_texts(folder: Path) -> Made:
    made = labelled_sounds(folder)
    return Made(made.data, ("a", "b"), flags=("--out", str(folder / "speech.wav")), settings={"codes": 12})


def routes(folder: Path) -> Made:
    walk_map = folder / "hall.xml"
    walk_map.write_text(
        '<map name="hall"><node x="3" y="5" item=""/><node x="3" y="6" item="lamp"/>'
        '<edge node1="3,5" node2="3,6" floor="brick" wall="fish"/></map>'
    )
    path = [[3, 5, 270], [3, 5, 180], [3, 6, 180]]
    instructions = ("go to the lamp", "turn and go to the lamp")
    found = [
        {
            "instruction": f"{instructions[number % 2]} {number}",
            "map": walk_map.name,
            "path": path[1 - number % 2 :],
        }
        for number in range(COUNT)
    ]
    (folder / "routes.json").write_text(json.dumps(found))
    look, flags = f"{walk_map} 3,5,180 go to the lamp", ("--map", str(walk_map), "--at", "3,5,180")
    return Made((folder / "routes.json",), look=look, flags=flags)


def episodes(folder: Path) -> Made:
    """With all actions of a world of minigrid, and views as large as its own."""
    generator = np.random.default_rng(1)
    for number in range(COUNT):
        pixels = generator.integers(0, 255, (3, 56, 56, 3)).astype(np.uint8)
        np.savez(folder / f"{number}.npz", pixels=pixels, actions=np.array([0, 2, 6]), instruction=np.array("go"))
    return Made((folder,), ("babyai/GoToLocal", "babyai/GoToRedBall"), "babyai/GoToLocal 7")


EXAMPLES: dict[tuple[type[InputForm], type[OutputForm]], Callable[[Path], Made]] = {
    (SourceText, OutputForm): parallel_text,
    (PairedText, OutputForm): parallel_text,
    (Text, OutputForm): labelled_text,
    (PairText, OutputForm): labelled_pairs,
    (JudgedText, OutputForm): preferences,
    (ReadTunedPrompt, PairTunedText): preferences,
    (ReadTunedPrompt, Written): prose,
    (TaggedWords, OutputForm): tagged_words,
    (ReadProse, OutputForm): prose,
    (ReadBlanks, OutputForm): prose_with_blanks,
    (AskedText, OutputForm): text_questions,
    (ClassName, OutputForm): labelled_images,
    (SquareImage, OutputForm): labelled_images,
    (PixelImage, OutputForm): small_images,
    (SquareImage, Written): captioned_images,
    (Caption, OutputForm): captioned_images,
    (CaptionedImages, OutputForm): captioned_images,
    (Question, OutputForm): image_questions,
    (WordLine, OutputForm): images_of_words,
    (FittedImage, Boxes): boxed_images,
    (FittedImage, Keypoints): posed_images,
    (FittedImage, Segments): masked_images,
    (Sound, OutputForm): labelled_sounds,
    (SpokenText, OutputForm): spoken_texts,
    (Directions, MapActions): routes,
    (LevelName, WorldActions): episodes,
}
"""What writes examples of a form that is read, and one that is written. Those of the nearest kinds are taken."""


def unreadable_images(folder: Path) -> list[str]:
    (folder / "damaged.png").write_bytes(b"no image")
    return [str(folder / "damaged.png"), str(folder / "missing.png")]


def unreadable_sounds(folder: Path) -> list[str]:
    (folder / "damaged.wav").write_bytes(b"RIFF")
    return [str(folder / "damaged.wav"), str(folder / "missing.wav")]


UNREADABLE: dict[type[InputForm], Callable[[Path], list[str]]] = {
    InputForm: lambda folder: [],
    ImageForm: unreadable_images,
    ImageWithText: lambda folder: [f"{path}\twhat?" for path in unreadable_images(folder)],
    Sound: unreadable_sounds,
    SourceText: lambda folder: [],
    PairText: lambda folder: ["no pair"],
    AskedText: lambda folder: ["no question"],
    ClassName: lambda folder: ["no label"],
    LevelName: lambda folder: ["nowhere"],
}
"""Inputs of a form that cannot be read. Beside them no form can read what is not UTF-8."""


def nearest(table: Mapping[Any, Any], *forms: Any) -> Any:
    """The entry of the kinds that are nearest to those of the forms."""
    reads, *writes = (type(form).__mro__ for form in forms)
    keys = [(one, other) for one in reads for other in writes[0]] if writes else reads
    found = next((table[key] for key in keys if key in table), None)
    assert found is not None, f"made_examples.py has no examples of {[type(form).__name__ for form in forms]}"
    return found


def examples_of(task: Task, folder: Path) -> Made:
    """Examples that the task can learn from."""
    folder.mkdir()
    made: Made = nearest(EXAMPLES, task.reads, task.writes)(folder)
    return made


def unreadable(task: Task, folder: Path) -> list[str]:
    """Inputs that a model of the task cannot read."""
    return [*nearest(UNREADABLE, task.reads)(folder), NOT_TEXT]
