"""Layouts of images whose pixels are labelled: the outlines of COCO and YOLO, and Pascal VOC."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL.Image
import PIL.ImageDraw

from foveate.data.folders import listed_file
from foveate.data.images.coco import CocoCategory, CocoFile, CocoImage, Id, coco_parts, find_image
from foveate.data.images.decoding import DamagedImage, read_image, read_sizes
from foveate.data.images.voc import set_names, voc_image, voc_parts
from foveate.data.images.yolo import YoloObject, yolo_images, yolo_parts
from foveate.data.layout import DataLayout
from foveate.errors import UserError
from foveate.special_tokens import IGNORE

UNLABELLED = 255
"""The number of a pixel without a label, as in Pascal VOC."""

VOC_LABELS = (
    *("background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
)
"""The classes of Pascal VOC, in the order of its numbers."""


class MaskedFiles(NamedTuple):
    """Image files, what reads the numbers of the labels of each (h, w), and the labels."""

    files: Sequence[Path]
    masks: Sequence[Callable[[], np.ndarray]]
    labels: tuple[str, ...]


@dataclass
class CocoOutline:
    """An object: polygons of its outline, or runs of pixels outside and inside it, down each column."""

    image_id: Id
    category_id: Id
    segmentation: Any = field(default_factory=list)
    iscrowd: int | bool = 0


def read_mask(path: Path) -> np.ndarray:
    """The class of each pixel (h, w). Raises UserError for a file that has no class numbers."""
    image = read_image(path)
    if image.mode not in ("L", "P", "1"):
        raise UserError(f"{path} is not a mask: it must have one number for each pixel, or a palette, not colours")
    numbers = np.array(image, np.int64)
    numbers[numbers == UNLABELLED] = IGNORE
    return numbers


def check_sizes(file: Path, mask: Path) -> None:
    """Raise UserError for a mask of another size than its image."""
    with suppress(DamagedImage):  # tasks leave out damaged images
        image, own = read_sizes(file)[1], read_sizes(mask)[0]
        if own != image:
            raise UserError(f"{mask} has {own[0]} x {own[1]} pixels, but its image {image[0]} x {image[1]}")


def _voc(path: Path) -> MaskedFiles | None:
    names = set_names(path, "Segmentation")
    if names is None:
        return None
    root = path.parents[2]
    files = [voc_image(root, name, str(path)) for name in names]
    masks = [listed_file(root, f"SegmentationClass/{name}.png", str(path)) for name in names]
    for file, mask in zip(files, masks, strict=True):
        check_sizes(file, mask)
    return MaskedFiles(files, [partial(read_mask, mask) for mask in masks], VOC_LABELS)


def _coco(path: Path) -> MaskedFiles | None:
    """The category of each pixel, later objects before earlier ones; the pixels of crowds have none."""
    if path.suffix.lower() != ".json":
        return None
    table = CocoFile(path, "file of COCO outlines", ("images", "annotations", "categories"))
    categories = list(table.rows("categories", CocoCategory))
    if len(categories) >= UNLABELLED:
        raise UserError(f"{path} has {len(categories)} categories, but a mask can have {UNLABELLED - 1}")
    numbers = {category.id: number for number, category in enumerate(categories, 1)}
    images = list(table.rows("images", CocoImage))
    outlines: dict[Id, list[tuple[int, Any]]] = {image.id: [] for image in images}
    for one in table.rows("annotations", CocoOutline):
        if one.image_id not in outlines or one.category_id not in numbers:
            raise UserError(f"{path} has an annotation of an image or a category that it does not list")
        outlines[one.image_id].append((IGNORE if one.iscrowd else numbers[one.category_id], one.segmentation))
    files = [find_image(path, image.file_name) for image in images]
    masks = [
        partial(_drawn, f"{path}, {image.file_name}", file, outlines[image.id])
        for file, image in zip(files, images, strict=True)
    ]
    return MaskedFiles(files, masks, ("background", *(" ".join(one.name.split()) for one in categories)))


def _drawn(where: str, file: Path, outlines: Sequence[tuple[int, Any]]) -> np.ndarray:
    """The number of each pixel of an image (h, w)."""
    width, height = read_sizes(file)[1]
    numbers = np.zeros((height, width), np.int64)
    for number, outline in outlines:
        numbers[_inside(where, outline, width, height)] = number
    return numbers


def _inside(where: str, outline: Any, width: int, height: int) -> np.ndarray:
    """Whether each pixel is inside an outline (h, w)."""
    if isinstance(outline, dict):
        counts = outline.get("counts")
        runs = _uncompressed(counts) if isinstance(counts, str) else [*counts] if isinstance(counts, Sequence) else [-1]
        if not all(isinstance(run, int) and run >= 0 for run in runs) or sum(runs) != width * height:
            raise UserError(f"{where}: the runs of an object do not fill its image of {width} x {height} pixels")
        flags = np.arange(len(runs)) % 2 == 1
        return np.repeat(flags, runs).reshape(width, height).T
    canvas = PIL.Image.new("1", (width, height))
    draw = PIL.ImageDraw.Draw(canvas)
    for polygon in outline:
        points = polygon if isinstance(polygon, list | tuple) else ()
        if len(points) < 6 or len(points) % 2 or not all(isinstance(one, int | float) for one in points):
            raise UserError(f"{where}: an outline must be a list of at least three points, x and y of each")
        draw.polygon([float(one) for one in points], fill=1)
    return np.array(canvas)


def _yolo(path: Path) -> MaskedFiles | None:
    """The class of each pixel, later objects before earlier ones."""
    found = yolo_images(path)
    if found is None:
        return None
    names, images = found
    files, masks = [], []
    for file, objects in images:
        if any(one.is_box for one in objects):
            raise UserError(f"the objects of {file} have boxes; pixels are labelled by outlines, CLASS X Y X Y X Y ...")
        files.append(file)
        masks.append(partial(_filled, file, objects))
    return MaskedFiles(files, masks, ("background", *names))


def _filled(file: Path, objects: Sequence[YoloObject]) -> np.ndarray:
    """The number of each pixel of an image (h, w)."""
    canvas = PIL.Image.new("L", read_sizes(file)[1])
    for one in objects:
        PIL.ImageDraw.Draw(canvas).polygon(one.points, fill=one.number + 1)
    return np.array(canvas, np.int64)


def _uncompressed(text: str) -> list[int]:
    """The runs that COCO writes as a text: five bits a letter, from the third run on the difference to the one before
    the last."""
    runs: list[int] = []
    value = shift = 0
    for letter in text:
        bits = ord(letter) - 48
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            value -= (1 << shift) if bits & 16 else 0
            runs.append(value + (runs[-2] if len(runs) > 2 else 0))
            value = shift = 0
        elif shift > 60:
            return []
    return runs


MASKED: tuple[DataLayout[MaskedFiles], ...] = (
    DataLayout(
        "COCO masks",
        "annotations/instances_train2017.json, instances_val2017.json, train2017/, val2017/; or as Roboflow "
        "exports it: train/_annotations.coco.json, valid/, test/",
        lambda folder: coco_parts(folder, "instances"),
        _coco,
    ),
    DataLayout(
        "Pascal VOC masks",
        "JPEGImages/ (.jpg or .png), SegmentationClass/, ImageSets/Segmentation/train.txt, val.txt",
        lambda folder: voc_parts(folder, "Segmentation"),
        _voc,
    ),
    DataLayout(
        "YOLO masks",
        "data.yaml with train, val and names, images/train/, labels/train/ with the outline of each object",
        yolo_parts,
        _yolo,
    ),
)
