"""Layouts of questions about images: VQA and GQA."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from foveate import limits
from foveate.config import from_dict
from foveate.data.folders import folders_in, listed_file
from foveate.data.layout import DataLayout, Parts, named_parts
from foveate.errors import UserError
from foveate.files import is_file, read_json

_VQA = re.compile(r"(v2_)?OpenEnded_mscoco_(\w+?)_questions\.json")
_GQA = re.compile(r"(train|val|testdev|test)_(balanced|all)_questions\.json")


class AskedImage(NamedTuple):
    """A question about an image file, its answer, and all answers that people gave, where there are several."""

    place: str
    file: Path
    question: str
    answer: str
    answers: tuple[str, ...] = ()
    kind: str | None = None


@dataclass
class VqaQuestion:
    """A question of VQA (Antol et al. 2015)."""

    question_id: int
    image_id: int
    question: str


@dataclass
class VqaAnswer:
    """What one person answered."""

    answer: str


@dataclass
class VqaAnnotation:
    """The answers to a question."""

    question_id: int
    multiple_choice_answer: str
    answers: tuple[VqaAnswer, ...]
    answer_type: str | None = None


@dataclass
class GqaQuestion:
    """A question of GQA (Hudson and Manning 2019)."""

    imageId: str | int
    question: str
    answer: str


def _rows(path: Path, name: str, kind: type[Any]) -> Iterator[Any]:
    values = read_json(path, limits.TABLE).get(name)
    if not isinstance(values, list):
        raise UserError(f"{path} is not a file of VQA: it has no list {name}")
    for number, value in enumerate(values):
        try:
            yield from_dict(kind, value, f"{name}[{number}]", others=True)
        except UserError as error:
            raise UserError(f"{path} is not a file of VQA: {error}") from None


def _vqa(path: Path) -> list[AskedImage] | None:
    match = _VQA.fullmatch(path.name)
    if match is None:
        return None
    version, part = match[1] or "", match[2]
    name = f"{version}mscoco_{part}_annotations.json"
    annotations = next((place for place in _beside(path, "Annotations", name) if is_file(place)), path.with_name(name))
    if not is_file(annotations):
        raise UserError(f"{path} has questions, but their answers are missing: there is no file {annotations}")
    known = {one.question_id: one for one in _rows(annotations, "annotations", VqaAnnotation)}
    found = []
    for one in _rows(path, "questions", VqaQuestion):
        if one.question_id not in known:
            raise UserError(f"{annotations} has no answer to question {one.question_id}")
        own = known[one.question_id]
        file = _vqa_image(path, part, one.image_id)
        answers = tuple(sorted(given.answer for given in own.answers))
        place = f"question {one.question_id}"
        found.append(AskedImage(place, file, one.question, own.multiple_choice_answer, answers, own.answer_type))
    return found


def _beside(path: Path, folder: str, name: str) -> list[Path]:
    """Where another file of VQA may be: beside a file, or in a folder of its own beside the file's folder."""
    return [path.parent / name, path.parent.parent / folder / name, path.parent.parent / folder.lower() / name]


def _vqa_image(path: Path, part: str, number: int) -> Path:
    """COCO's image: in a folder such as `train2014`, or in `images`, there or beside the file."""
    for folder in (path.parent, path.parent.parent):
        for place in (part, f"images/{part}", "images", f"Images/mscoco/{part}", f"Images/{part}", ""):
            name = f"COCO_{part}_{number:012}.jpg"
            if is_file(folder / place / name):
                return listed_file(folder / place, name, str(path))
    raise UserError(f"{path}: there is no image COCO_{part}_{number:012}.jpg in {path.parent / part}")


def _gqa(path: Path) -> list[AskedImage] | None:
    if _GQA.fullmatch(path.name) is None:
        return None
    images = path.parent if (path.parent / "images").is_dir() else path.parent.parent
    found = []
    for name, values in read_json(path, limits.TABLE).items():
        try:
            one = from_dict(GqaQuestion, values, f"question {name}", others=True)
        except UserError as error:
            raise UserError(f"{path} is not a file of GQA: {error}") from None
        file = listed_file(images / "images", f"{one.imageId}.jpg", f"{path}, question {name}")
        found.append(AskedImage(f"question {name}", file, one.question, one.answer))
    return found


def _parts(folder: Path, *names: str) -> Parts | None:
    inside = folders_in(folder) if folder.is_dir() else []
    places = [folder, *(place for place in inside if place.name.lower() in ("questions", "annotations"))]
    return next((found for place in places if (found := named_parts(place, *names)) is not None), None)


def soft_accuracy(answer: str, answers: tuple[str, ...]) -> float:
    """VQA's accuracy of an answer in percent: a third for each other person who gave it, on average over all but one
    of the people (Antol et al. 2015)."""
    same, count = Counter(answers)[answer], len(answers)
    without = same * min(same - 1, 3) + (count - same) * min(same, 3)
    return 100 * without / (3 * count)


ASKED_IMAGES: tuple[DataLayout[list[AskedImage]], ...] = (
    DataLayout(
        "VQA v2",
        "v2_OpenEnded_mscoco_train2014_questions.json, v2_mscoco_train2014_annotations.json, train2014/; val2014; or "
        "in Questions/, Annotations/, Images/mscoco/",
        lambda folder: _parts(
            folder, *(rf"(v2_)?OpenEnded_mscoco_{name}\d+_questions\.json" for name in ("train", "val"))
        ),
        _vqa,
    ),
    DataLayout(
        "GQA",
        "train_balanced_questions.json, val_balanced_questions.json, images/",
        lambda folder: _parts(
            folder, *(rf"{name}_balanced_questions\.json" for name in ("train", "val", "(testdev|test)"))
        ),
        _gqa,
    ),
)
