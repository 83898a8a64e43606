"""Captioned images: a table, captions in the JSON of COCO, or scenes of a named source."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import PIL.Image

from foveate.data.dataset import Dataset, Note
from foveate.data.folders import IMAGE_FOLDERS, listed_beside
from foveate.data.images.caption_layouts import CAPTIONED, check_length
from foveate.data.images.decoding import read_image
from foveate.data.layout import read_by
from foveate.data.table import CAPTION, IMAGE, DataTable
from foveate.data.text.files import Paths, as_paths
from foveate.errors import UserError


@dataclass(frozen=True)
class Region:
    """Where something stands in an image, and the words of the first caption that name it."""

    start: int
    end: int
    """The name is `caption[start:end]`."""
    box: tuple[float, float, float, float]
    """Left, top, right and bottom, as shares of the image's width and height."""


@dataclass(frozen=True)
class CaptionedImage:
    """An image and its captions, at least one."""

    place: str
    captions: tuple[str, ...]
    read: Callable[[], PIL.Image.Image] = field(repr=False)
    """Decodes the image. Raises UserError where it is damaged."""
    regions: tuple[Region, ...] = ()
    """Everything that the first caption names, in its order, where it is known."""
    identity: str | None = None
    """What the image follows from, where it is composed: its pixels need not be looked at to tell it from others."""
    kind: str = ""
    """What is new about the image, where test images are of several kinds, which are measured apart."""
    file: Path | None = field(default=None, repr=False, compare=False)
    """The file that `read` decodes, if there is one."""

    def content(self) -> bytes:
        captions = "\n".join(self.captions)
        if self.identity is not None:
            return f"{captions}\0{self.identity}".encode()
        image = self.read()
        return f"{captions}\0{image.mode}{image.size}\0".encode() + image.tobytes()


def captioned_images(paths: Paths) -> Dataset[CaptionedImage]:
    """A table with `path<TAB>caption` on each line, or a file of one of the layouts `CAPTIONED`.

    An image may have several lines. Paths of a table are relative to its folder. Raises UserError for anything else,
    and for missing images.
    """
    paths = as_paths(paths)
    if len(paths) != 1:
        raise UserError(f"captioned images are one table or one JSON file; {len(paths)} were given")
    path = paths[0]
    lines: list[int | None] | None = None
    if (read := read_by(CAPTIONED, path)) is not None:
        found, empty = read
    else:
        lines = []
        found, empty = _of_table(path, lines), 0
    if not found:
        raise UserError(f"{path}: there is no captioned image in it")
    examples = [
        CaptionedImage(str(file), tuple(captions), partial(read_image, file), file=file)
        for file, captions in found.items()
    ]
    notes: list[Note] = [_count_captions]
    notes += [f"{empty:,} empty captions left out"] if empty else []
    return Dataset(path.name, examples, "images", notes, lines)


def _of_table(path: Path, lines: list[int | None]) -> dict[Path, list[str]]:
    """The captions of each image; to `lines`, the number of the image of each line is added, None for an empty one."""
    found, numbers = dict[Path, list[str]](), dict[Path, int]()
    for row in DataTable(path, (IMAGE, CAPTION)):
        if row is None:
            lines.append(None)
            continue
        (name, caption), where = row.cells, f"{path}, {row.place}"
        check_length(caption, where)
        found.setdefault(file := listed_beside(path.parent, name, where, IMAGE_FOLDERS), []).append(caption)
        lines.append(numbers.setdefault(file, len(numbers)))
    return found


def _count_captions(images: Iterable[CaptionedImage]) -> str:
    return f"{sum(len(image.captions) for image in images):,} captions"
