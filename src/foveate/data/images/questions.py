"""Questions about images: a table, or scenes of a named source."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import PIL.Image

from foveate.data.dataset import Dataset, without_empty
from foveate.data.folders import IMAGE_FOLDERS, listed_beside
from foveate.data.images.decoding import read_image
from foveate.data.images.question_layouts import ASKED_IMAGES, AskedImage
from foveate.data.layout import read_by
from foveate.data.table import ANSWER, IMAGE, QUESTION, DataTable
from foveate.data.text.files import Paths, as_paths
from foveate.errors import UserError


@dataclass(frozen=True)
class ImageQuestion:
    """A question about an image, and its answer."""

    place: str
    question: str
    answer: str
    read: Callable[[], PIL.Image.Image] = field(repr=False)
    """Decodes the image. Raises UserError where it is damaged."""
    image: str
    """Stands for the image: questions with the same one are about the same image."""
    kind: str | None = None
    """What is asked for, such as "colour", where it is known."""
    box: tuple[float, float, float, float] | None = None
    """Where the answer can be seen: left, top, right and bottom as shares of the image's sides, where it is known."""
    composed: bool = False
    """The image follows from `image`: its pixels need not be looked at to tell it from others."""
    file: Path | None = field(default=None, repr=False, compare=False)
    """The file that `read` decodes, if there is one."""
    answers: tuple[str, ...] = ()
    """All that people answered, where several were asked."""

    def content(self) -> bytes:
        text = f"{self.question}\0{self.answer}\0"
        if self.composed:
            return f"{text}{self.image}".encode()
        image = self.read()
        return f"{text}{image.mode}{image.size}\0".encode() + image.tobytes()


def image_questions(paths: Paths) -> Dataset[ImageQuestion]:
    """A table with `image<TAB>question<TAB>answer` on each line, or a file of one of the layouts `ASKED_IMAGES`.

    Paths of images in a table are relative to its folder.
    Raises UserError for anything else, and for missing images.
    """
    paths = as_paths(paths)
    if len(paths) != 1:
        raise UserError(f"questions are one table; {len(paths)} were given")
    path, lines = paths[0], list[int | None]()
    if (listed := read_by(ASKED_IMAGES, path)) is not None:
        found = [_of_layout(one) for one in listed]
        lines = [*range(len(found))]
    else:
        found = _of_table(path, lines)
    if not found:
        raise UserError(f"{path}: there is no question in it")
    return Dataset(path.name, found, "questions", [_count_images], lines)


def _count_images(questions: Iterable[ImageQuestion]) -> str:
    return f"{len({one.image for one in questions}):,} images"


def _of_layout(one: AskedImage) -> ImageQuestion:
    read, image = partial(read_image, one.file), str(one.file)
    return ImageQuestion(one.place, one.question, one.answer, read, image, one.kind, file=one.file, answers=one.answers)


def _of_table(path: Path, lines: list[int | None]) -> list[ImageQuestion]:
    found = []
    for row in without_empty(DataTable(path, (IMAGE, QUESTION, ANSWER)), lines):
        (name, question, answer), where = row.cells, f"{row.place} of {path.name}"
        file = listed_beside(path.parent, name, f"{path}, {row.place}", IMAGE_FOLDERS)
        found.append(ImageQuestion(where, question, answer, partial(read_image, file), str(file), file=file))
    return found
