"""YOLO's data: a `data.yaml` names the images of each part and the classes; a text file for each image has a line for
each object, its class and its box or the outline of its pixels."""

import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from foveate.data.folders import listed_file
from foveate.data.images.decoding import DamagedImage, read_sizes
from foveate.data.images.labelled import images_below
from foveate.data.layout import Parts
from foveate.data.text.files import read_sentences
from foveate.errors import UserError, show_value
from foveate.files import is_file, read_text

SETTINGS = ("data.yaml", "dataset.yaml", "data.yml")
"""What the file is usually called that names the images and the classes. One with another name, such as coco8.yaml, is
read where it is the only YAML file of the folder."""

_YAML = (".yaml", ".yml")

_ENTRY = re.compile(r"(?P<key>[\w-]+)\s*:\s*(?P<value>.*)")

FEWEST_NUMBERS = 6
"""Numbers of the smallest outline: three points."""


class YoloObject(NamedTuple):
    """An object: the number of its class, and the points of its outline in pixels, across and down."""

    number: int
    points: tuple[tuple[float, float], ...]
    is_box: bool
    """Whether the file has the box alone, of which these are the corners."""


class YoloImage(NamedTuple):
    """An image and its objects; where it cannot be decoded, in no pixels."""

    file: Path
    objects: list[YoloObject]


def read_settings(path: Path) -> dict[str, list[str]]:
    """The entries of a `data.yaml` of texts, lists, and tables of numbers to names. It needs no more of YAML.

    Raises UserError for a line that is something else.
    """
    found: dict[str, list[str]] = {}
    key = ""
    for number, raw in enumerate(read_text(path).splitlines(), 1):
        line = re.sub(r"(^|\s)#.*", "", raw).rstrip()
        if not line.strip():
            continue
        entry = _ENTRY.fullmatch(line)
        item = re.fullmatch(r"\s*(?:-|\d+\s*:)\s+(?P<value>.+)", line)
        if entry:
            key, value = entry["key"], entry["value"].strip()
            inner = value.strip("[]").split(",") if value.startswith("[") else [value]
            found[key] = [text for text in map(_unquoted, inner) if text]
        elif item and key:
            found[key].append(_unquoted(item["value"]))
        elif not (key and line.startswith((" ", "]"))):  # deeper entries are of others
            raise UserError(f"{path}, line {number}: {show_value(line)} is not an entry such as train: images/train")
    return found


def _unquoted(text: str) -> str:
    return text.strip().strip("\"'")


def _settings_file(path: Path) -> Path | None:
    if not path.is_dir():
        return path if path.suffix.lower() in _YAML and is_file(path) else None
    usual = next((path / name for name in SETTINGS if is_file(path / name)), None)
    others = [file for file in path.iterdir() if file.suffix.lower() in _YAML and is_file(file)]
    return others[0] if usual is None and len(others) == 1 and _names_classes(others[0]) else usual


def _names_classes(file: Path) -> bool:
    return all(re.search(rf"^{key}\s*:", read_text(file), re.MULTILINE) for key in ("train", "names"))


def yolo_parts(path: Path) -> Parts | None:
    """The folders of images, and the lists of images, that a `data.yaml` names; None where there is none."""
    file = _settings_file(path)
    if file is None:
        return None
    settings = read_settings(file)
    return Parts(*(_places_of(file, settings, name) for name in ("train", "val", "test")))


def _places_of(file: Path, settings: dict[str, list[str]], part: str) -> tuple[Path, ...]:
    """The folders or lists of a part: they count from the file, or from its `path`, and stay inside its folder."""
    found = []
    for name in settings.get(part, []):
        places = (base / one for base in _bases(file, settings) for one in (name, _below(name)))
        place = next((one for one in places if _inside(file, one)), None)
        if place is None:
            what = "list" if name.endswith(".txt") else "folder"
            raise UserError(f"{file}: there is no {what} {name} of {part} images in {file.parent}")
        found.append(place)
    return tuple(found)


def _bases(file: Path, settings: dict[str, list[str]]) -> list[Path]:
    """Where names count from, whatever other folders the writer of the file had around it."""
    return [file.parent / re.sub(r"^(\.\./)+", "", base) for base in [*settings.get("path", []), ""]]


def _below(name: str) -> str:
    """The name as it counts from the file, whatever other folders its writer had around it."""
    return re.sub(r"^(\.\.?/)+", "", name)


def _inside(file: Path, place: Path) -> bool:
    there = place.is_dir() or (place.suffix == ".txt" and is_file(place))
    return there and Path(os.path.realpath(place)).is_relative_to(os.path.realpath(file.parent))


def yolo_images(path: Path) -> tuple[list[str], Iterator[YoloImage]] | None:
    """The names of the classes, and the images of a folder `images`, or of a folder in it, or those that a list of a
    `data.yaml` names; None for anything else. Raises UserError, also where the images are asked for."""
    in_images = path.is_dir() and "images" in path.parts[-2:]
    if not in_images and not (path.suffix == ".txt" and is_file(path)):
        return None
    file = next((found for place in path.parents[:3] if (found := _settings_file(place)) is not None), None)
    if file is None:
        return None
    settings = read_settings(file)
    if not in_images and path.resolve() not in {one.resolve() for part in yolo_parts(file) or () for one in part}:
        return None
    names = settings.get("names", [])
    if not names:
        raise UserError(f"{file} has no names of classes")
    if "kpt_shape" in settings:
        raise UserError(f"{file} has a kpt_shape: its lines have keypoints, which are read of COCO's files alone")
    images = images_below(path) if in_images else [*_listed(path, file, settings)]
    return names, (_with_objects(image, names) for image in images)


def _listed(path: Path, file: Path, settings: dict[str, list[str]]) -> Iterator[Path]:
    """The images of a list, whose names count from the list or as other names of the `data.yaml`."""
    for number, line in enumerate(read_sentences(path), 1):
        if line:
            name = _below(line)
            bases = [path.parent, *_bases(file, settings)]
            base = next((one for one in bases if is_file(one / name)), bases[0])
            yield listed_file(base, name, f"{path}, line {number}")


def _with_objects(image: Path, names: list[str]) -> YoloImage:
    """The file of objects is in `labels` where the image is in `images`, else beside it. Without one, an image has no
    objects, as YOLO takes it."""
    parts = [*image.parts]
    if "images" in parts:
        parts[len(parts) - 1 - parts[::-1].index("images")] = "labels"
    labels = Path(*parts).with_suffix(".txt")
    if not is_file(labels):
        return YoloImage(image, [])
    size = 1.0, 1.0
    with suppress(DamagedImage):  # tasks leave out damaged images
        size = read_sizes(image)[1]
    lines = enumerate(read_sentences(labels), 1) if labels.stat().st_size else ()
    return YoloImage(image, [_object(f"{labels}, line {n}", line, names, size) for n, line in lines if line])


def _object(where: str, line: str, names: list[str], size: tuple[float, float]) -> YoloObject:
    """`CLASS X Y WIDTH HEIGHT` of a box, or `CLASS X Y X Y X Y ...` of an outline; all but the class as shares of the
    image."""
    number, *cells = line.split()
    try:
        numbers = [float(cell) for cell in cells]
    except ValueError:
        numbers = []
    is_box, is_outline = len(numbers) == 4, len(numbers) >= FEWEST_NUMBERS and not len(numbers) % 2
    if not (is_box or is_outline) or not all(map(math.isfinite, numbers)) or not number.isdecimal():
        raise UserError(f"{where}: a line must be CLASS X Y WIDTH HEIGHT, five numbers, or CLASS and an outline's X Y")
    if int(number) >= len(names):
        raise UserError(f"{where}: class {number}, but data.yaml names {len(names)} classes")
    if is_box:
        across, down, width, height = numbers
        left, top, right, bottom = across - width / 2, down - height / 2, across + width / 2, down + height / 2
        numbers = [left, top, right, top, right, bottom, left, bottom]
    points = zip(numbers[::2], numbers[1::2], strict=True)
    return YoloObject(int(number), tuple((x * size[0], y * size[1]) for x, y in points), is_box)
