"""Images with named points, such as the joints of a person, of a user's COCO keypoints JSON."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import PIL.Image

from foveate.data.dataset import Dataset
from foveate.data.images.boxes import annotated
from foveate.data.images.coco import CocoFile, CocoImage, CocoKeypoints, CocoPose, Id, coco_parts, find_image
from foveate.data.images.decoding import DamagedImage
from foveate.data.images.voc import Box
from foveate.data.layout import DataLayout
from foveate.data.text.files import Paths, as_paths
from foveate.errors import UserError

POSED: tuple[DataLayout[Any], ...] = (
    DataLayout(
        "COCO keypoints",
        "annotations/person_keypoints_train2017.json, person_keypoints_val2017.json, train2017/, val2017/",
        lambda folder: coco_parts(folder, r"\w*keypoints"),
    ),
)
"""The layouts with parts; each part is a file."""

MARGIN = 0.1
"""An object that is cut out keeps this share of its box around it, on each side."""

Point = tuple[float, float]
"""Across and down, in pixels."""


@dataclass(frozen=True)
class PosedImage:
    """An image with the named points of one object. A point that is not in the image is None."""

    place: str
    names: tuple[str, ...]
    points: tuple[Point | None, ...]
    read: Callable[[], PIL.Image.Image] = field(repr=False, compare=False)
    """Decodes the image. Raises UserError where it is damaged."""
    identity: Callable[[], bytes] | None = field(default=None, repr=False, compare=False)
    """Something shorter that stands for the pixels, if there is."""
    file: Path | None = field(default=None, repr=False, compare=False)
    """The file that `read` decodes, if there is one."""

    def content(self) -> bytes:
        """Names, points and pixels, if they can be read."""
        pixels = b""
        with suppress(DamagedImage):
            pixels = self.read().tobytes() if self.identity is None else self.identity()
        return f"{self.names}{self.points}\0".encode() + pixels


def posed_images(paths: Paths) -> Dataset[PosedImage]:
    """The objects of a COCO JSON file whose category has `keypoints`.

    Where an image has several objects, each object of the file is cut out with its box, else images are whole. Objects
    without a labelled point are left out, and counted in the notes. Raises UserError for anything else.
    """
    paths = as_paths(paths)
    if len(paths) != 1:
        raise UserError(f"images with points are one COCO JSON file; {len(paths)} were given")
    (path,) = paths
    if not path.is_file():
        raise UserError(f"there is no file {path}")
    table = CocoFile(path, "file of COCO keypoints", ("images", "annotations", "categories"))
    category = _category(path, table)
    images = {image.id: _reader(path, image) for image in table.rows("images", CocoImage)}
    poses, left_out = list[CocoPose](), Counter[str]()
    for pose in table.rows("annotations", CocoPose):
        if pose.image_id not in images:
            raise UserError(f"{path} has an annotation of an image that it does not list")
        if pose.category_id == category.id and len(pose.keypoints) != 3 * len(category.keypoints):
            raise UserError(
                f"{path} has an annotation with {len(pose.keypoints)} numbers, but {len(category.keypoints)} points "
                f"take {3 * len(category.keypoints)}"
            )
        if pose.category_id != category.id or pose.iscrowd or not any(pose.keypoints[2::3]):
            left_out["objects without points"] += 1
            continue
        poses.append(pose)
    if not poses:
        raise UserError(f"{path}: no object has a labelled point")
    several = max(Counter(pose.image_id for pose in poses).values()) > 1
    examples = [_example(images, pose, category.keypoints, several) for pose in poses]
    notes = [f"{len(category.keypoints)} points of each {category.name}", *(["cut out"] if several else [])]
    notes += [f"left out: {count:,} {what}" for what, count in left_out.items()]
    return Dataset(path.name, examples, "images", notes)


def _category(path: Path, table: CocoFile) -> CocoKeypoints:
    """The category that has points. Raises UserError where there is none, or more than one."""
    found = [category for category in table.rows("categories", CocoKeypoints) if category.keypoints]
    if len(found) != 1:
        raise UserError(f"{path} has {len(found)} categories with keypoints, but must have one")
    (category,) = found
    names = tuple(" ".join(name.split()) for name in category.keypoints)
    if len(set(names)) < len(names) or not all(names):
        raise UserError(f"{path}: the names of the keypoints must be different, and none empty")
    category.keypoints = names
    return category


def _reader(path: Path, image: CocoImage) -> tuple[Path, Callable[[], PIL.Image.Image]]:
    """The file of an image, and what decodes it as it is annotated."""
    file = find_image(path, image.file_name)
    return file, annotated(file, (image.width or 0.0, image.height or 0.0))[0]


def _example(
    images: dict[Id, tuple[Path, Callable[[], PIL.Image.Image]]], pose: CocoPose, names: tuple[str, ...], cut: bool
) -> PosedImage:
    (file, read), numbers = images[pose.image_id], pose.keypoints
    points = [
        (across, down) if known else None
        for across, down, known in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    ]
    if not cut:
        return PosedImage(str(file), names, tuple(points), read, file=file)
    box = _around(pose, [point for point in points if point is not None])
    moved = tuple(None if point is None else (point[0] - box[0], point[1] - box[1]) for point in points)
    return PosedImage(str(file), names, moved, lambda: read().crop(box), file=file)


def _around(pose: CocoPose, points: list[Point]) -> tuple[int, int, int, int]:
    """The box of an object, or of its points where it has none, with a margin, in whole pixels."""
    left, top, right, bottom = _box(pose, points)
    wide, high = MARGIN * max(right - left, 1), MARGIN * max(bottom - top, 1)
    return int(left - wide), int(top - high), int(right + wide) + 1, int(bottom + high) + 1


def _box(pose: CocoPose, points: list[Point]) -> Box:
    if pose.bbox is not None and min(pose.bbox[2:]) > 0:
        left, top, width, height = pose.bbox
        return left, top, left + width, top + height
    across, down = zip(*points, strict=True)
    return min(across), min(down), max(across), max(down)
