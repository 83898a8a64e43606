"""Images of words with what is written in them."""

from collections.abc import Sequence
from itertools import chain
from typing import Protocol, runtime_checkable

import PIL.Image

from foveate.data.dataset import Dataset
from foveate.data.images.decoding import flat, read_sizes, turn_upright
from foveate.data.images.labelled import image_of_file, labelled_images
from foveate.data.images.word_layouts import LISTED_WORDS
from foveate.data.layout import read_by
from foveate.data.table import TRANSCRIPT
from foveate.data.text.files import Paths, as_paths
from foveate.errors import UserError

TABLE = "labels.tsv"
"""The table in a folder of word images."""

TALLEST = 8
"""Height of the tallest image that may hold a line of text, as a multiple of its width."""


@runtime_checkable
class WordImage(Protocol):
    """An image and what is written in it."""

    @property
    def place(self) -> str: ...

    @property
    def label(self) -> str:
        """The text in the image."""

    def read(self) -> PIL.Image.Image: ...

    def content(self) -> bytes: ...


def word_images(paths: Paths) -> Dataset[WordImage]:
    """A table with `image<TAB>text` on each line, a folder with such a table, `labels.tsv`, or one of the layouts
    `LISTED_WORDS`; or several of them, one behind the other.

    Paths of images are relative to the table's folder. Images that cannot be used, such as those that are too tall for
    a line of text, are left out, and the dataset's notes say so. Raises UserError for anything else, for missing
    images, and where no image is left.
    """
    paths = as_paths(paths)
    if len(paths) != 1:
        return _joined([word_images(path) for path in paths])
    table, found, problems = paths[0], list[int](), list[str]()
    if (listed := read_by(LISTED_WORDS, table)) is not None:
        images = Dataset(str(table), [image_of_file(file, word) for file, word in listed], "images")
    else:
        table = table / TABLE if table.is_dir() else table
        if not table.is_file():
            raise UserError(f"there is no table {table} with image<TAB>text on each line")
        images = labelled_images([table], TRANSCRIPT)
    for number, one in enumerate(images):
        assert one.file is not None
        try:
            check_line_of_text(read_sizes(one.file)[1], str(one.file))
        except UserError as error:
            problems.append(str(error))
        else:
            found.append(number)
    if not found:
        raise UserError(problems[0] if problems else f"{table}: there is no word in it")
    notes = [f"left out {len(problems):,}, the first because {problems[0]}"] if problems else []
    kept = images.only(found)
    return Dataset(str(table), [*kept], "images", notes, kept.lines)


def _joined(parts: Sequence[Dataset[WordImage]]) -> Dataset[WordImage]:
    """The images of several tables."""
    notes = [note for part in parts for note in part.notes]
    return Dataset(" and ".join(part.name for part in parts), [*chain.from_iterable(parts)], "images", notes)


def check_line_of_text(size: tuple[int, int], name: str) -> None:
    """Raise UserError for an image of a width and height that cannot hold a line of text."""
    width, height = size
    if height > TALLEST * width:
        raise UserError(f"{name} is {width} x {height} pixels: too tall for a line of text")


def grey(image: PIL.Image.Image) -> PIL.Image.Image:
    """The image upright and grey, on white where it is transparent."""
    return flat(turn_upright(image)).convert("L")
