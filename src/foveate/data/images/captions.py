"""Captioned images: a table, captions in the JSON of COCO, or scenes of a named source."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import PIL.Image

from foveate.data.dataset import Dataset
from foveate.data.folders import listed_file
from foveate.data.images.coco import CocoCaption, CocoFile, CocoImage
from foveate.data.images.decoding import read_image
from foveate.data.table import CAPTION, IMAGE, read_table
from foveate.data.text.files import Paths, as_paths
from foveate.errors import UserError, show_value
from foveate.files import is_file

LONGEST = 2_000
"""Most characters of a caption."""


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
    """A table with `path<TAB>caption` on each line, or a JSON file of COCO captions.

    An image may have several lines. Paths of a table are relative to its folder; images of a JSON file are beside it or
    in a folder `images` there. Raises UserError for anything else, and for missing images.
    """
    paths = as_paths(paths)
    if len(paths) != 1:
        raise UserError(f"captioned images are one table or one JSON file; {len(paths)} were given")
    path = paths[0]
    lines: list[int | None] | None = None if path.suffix == ".json" else []
    found, empty = _of_coco(path) if lines is None else (_of_table(path, lines), 0)
    if not found:
        raise UserError(f"{path}: there is no captioned image in it")
    examples = [
        CaptionedImage(str(file), tuple(captions), partial(read_image, file), file=file)
        for file, captions in found.items()
    ]
    notes = [f"{sum(map(len, found.values())):,} captions"]
    notes += [f"{empty:,} empty captions left out"] if empty else []
    return Dataset(path.name, examples, "images", notes, lines)


def _of_table(path: Path, lines: list[int | None]) -> dict[Path, list[str]]:
    """The captions of each image; to `lines`, the number of the image of each line is added, None for an empty one."""
    found, numbers = dict[Path, list[str]](), dict[Path, int]()
    for row in read_table(path, (IMAGE, CAPTION)):
        if row is None:
            lines.append(None)
            continue
        (name, caption), where = row.cells, f"{path}, line {row.line}"
        _check_length(caption, where)
        found.setdefault(file := listed_file(path.parent, name, where), []).append(caption)
        lines.append(numbers.setdefault(file, len(numbers)))
    return found


def _check_length(caption: str, where: str) -> None:
    if len(caption) > LONGEST:
        raise UserError(f"{where}: a caption of {len(caption):,} characters; at most {LONGEST:,} are read")


def _of_coco(path: Path) -> tuple[dict[Path, list[str]], int]:
    """The captions of each image, and how many are empty."""
    table = CocoFile(path, "file of COCO captions", ("images", "annotations"))
    files = {one.id: one.file_name for one in table.rows("images", CocoImage)}
    captions = []
    for one in table.rows("annotations", CocoCaption):
        if one.image_id not in files:
            raise UserError(f"{path} has a caption of the image {show_value(one.image_id)}, which it does not list")
        captions.append((files[one.image_id], " ".join(one.caption.split())))
    found: dict[Path, list[str]] = {}
    for name, caption in captions:
        if caption:
            _check_length(caption, f"{path}, {name}")
            found.setdefault(_beside(path, name), []).append(caption)
    return found, sum(not caption for _, caption in captions)


def _beside(path: Path, name: str) -> Path:
    images = path.parent / "images"
    return listed_file(images if is_file(images / name) else path.parent, name, str(path))
