"""What is read of COCO's JSON files: boxes and captions of images."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from foveate import limits
from foveate.config import from_dict
from foveate.errors import UserError
from foveate.files import read_json

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

    def __init__(self, path: Path, what: str, tables: tuple[str, ...]) -> None:
        """Raises UserError for a file without these `tables`; `what` says what it should be."""
        self.path, self._what = path, what
        table: dict[str, Any] = read_json(path, limits.TABLE)
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
