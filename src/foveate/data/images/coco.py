"""What is read of COCO's JSON files: boxes and captions of images."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from foveate import limits
from foveate.config import from_dict
from foveate.data.folders import listed_file, split_folders
from foveate.data.layout import Parts, inner_folder, named_parts
from foveate.errors import UserError
from foveate.files import is_file, read_json

EXPORTED = "_annotations.coco.json"
"""What other programs call the file in each folder of a split."""

Id = int | str
"""COCO's own are numbers; other programs write texts."""

Row = TypeVar("Row")


@dataclass
class CocoImage:
    """An image; its size may be left out."""

    id: Id
    file_name: str
    width: float | None = None
    height: float | None = None


@dataclass
class CocoCategory:
    """A kind of object."""

    id: Id
    name: str


@dataclass
class CocoBox:
    """An object in an image: left, top, width, height."""

    image_id: Id
    category_id: Id
    bbox: tuple[float, float, float, float]
    iscrowd: int | bool = 0


@dataclass
class CocoKeypoints:
    """A kind of object; its points have names, in the order of an annotation."""

    id: Id
    name: str
    keypoints: tuple[str, ...] = ()


@dataclass
class CocoPose:
    """The points of an object: across, down, and 0 where it is not labelled, for each."""

    image_id: Id
    category_id: Id
    keypoints: tuple[float, ...] = ()
    bbox: tuple[float, float, float, float] | None = None
    iscrowd: int | bool = 0


@dataclass
class CocoCaption:
    """A caption of an image."""

    image_id: Id
    caption: str


class CocoFile:
    """A file with lists of such rows."""

    def __init__(self, path: Path, what: str, tables: tuple[str, ...], content: dict[str, Any] | None = None) -> None:
        """Raises UserError for a file without these `tables`; `what` says what it should be. `content` is what was
        read of it, if it was."""
        self.path, self._what = path, what
        table: dict[str, Any] = read_json(path, limits.TABLE) if content is None else content
        missing = [name for name in tables if not isinstance(table.get(name), list)]
        if missing:
            raise UserError(f"{path} is not a {what}: it has no {' and no '.join(missing)}")
        self._tables = {name: table[name] for name in tables}

    def rows(self, name: str, kind: type[Row]) -> Iterator[Row]:
        """The rows of a table. Raises UserError for one without a field, or with another type in it."""
        for number, values in enumerate(self._tables[name]):
            try:
                yield from_dict(kind, values, f"{name}[{number}]", others=True)
            except UserError as error:
                raise UserError(f"{self.path} is not a {self._what}: {error}") from None


def coco_parts(folder: Path, kind: str) -> Parts | None:
    """The files `KIND_train2017.json` and so on in `annotations`, or `_annotations.coco.json` in train, valid, test."""
    names = [rf"{kind}_({name})\d*\.json" for name in ("train", "val|valid", "test")]
    if folder.is_dir() and (found := named_parts(inner_folder(folder, "annotations"), *names)) is not None:
        return found
    split = split_folders(folder)
    files = [place and place / EXPORTED for place in split] if split else []
    if not files or not all(file is None or is_file(file) for file in files):
        return None
    return Parts(*((file,) if file else () for file in files))


def find_image(path: Path, name: str) -> Path:
    """The image file that a JSON file lists: its name counts from the file's folder or the one above, from `images`
    there, or from a folder such as `train2017` that the file is named after."""
    own = path.stem.rpartition("_")[2]
    for folder in (path.parent, path.parent.parent):
        for inner in ("", "images", own, f"images/{own}"):
            if is_file(folder / inner / name):
                return listed_file(folder / inner, name, str(path))
    raise UserError(f"{path} lists the image {name}, which is neither in {path.parent} nor in {path.parent / 'images'}")
