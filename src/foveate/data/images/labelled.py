"""Labelled images: folders of classes, a table of paths, or arrays of a named source, as 8-bit pixels in memory."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import PIL.Image
from PIL import ImageOps

from foveate.data.dataset import Dataset, Example, without_empty
from foveate.data.folders import IMAGE_FOLDERS, class_folders, files_below, listed_beside
from foveate.data.images.decoding import (
    LARGEST_FILE,
    DamagedImage,
    FileReader,
    flat,
    in_8_bits,
    read_shrunk,
    turn_upright,
)
from foveate.data.table import IMAGE, LABEL, Column, DataTable
from foveate.data.text.files import Paths, as_paths
from foveate.errors import UserError
from foveate.limits import check_file

READ = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".avif")

NOT_READ = (".heic", ".heif", ".jxl", ".jp2", ".j2k", ".jxr", ".tga", ".psd", ".exr", ".dng", ".cr2", ".nef", ".arw")

ENDINGS = (*READ, *NOT_READ)
"""File names that are taken for images in a folder. Those of formats that are not read are counted and named."""


LISTED = 10
"""Damaged images that are named, of many."""

LARGEST_SIDE = 64
"""Side of the square that images of different sizes are scaled to, where no size is given."""


@dataclass(frozen=True)
class ImageFormat:
    """How an image becomes pixels: scaled so that it fills a square of `size` pixels, cropped in the middle."""

    size: int
    channels: int
    """1 for grey images, 3 for colour; transparent places become white."""

    def pixels(self, image: PIL.Image.Image) -> np.ndarray:
        """The image as (channels, size, size) in 8 bits."""
        image = self.whole(image)
        if image.size != (self.size, self.size):
            image = ImageOps.fit(image, (self.size, self.size), PIL.Image.Resampling.BICUBIC)
        return self.array(image)

    def part(self, image: PIL.Image.Image, box: tuple[float, float, float, float]) -> np.ndarray:
        """The part in a box of left, top, right and bottom of a `whole` image, stretched over the square."""
        return self.array(image.resize((self.size, self.size), PIL.Image.Resampling.BICUBIC, box))

    def whole(self, image: PIL.Image.Image) -> PIL.Image.Image:
        """The image upright and with these channels, in its own size."""
        image, mode = flat(turn_upright(image)), "L" if self.channels == 1 else "RGB"
        return image if image.mode == mode else image.convert(mode)

    def array(self, image: PIL.Image.Image) -> np.ndarray:
        """An image of this size and these channels, as (channels, size, size)."""
        return np.asarray(image).reshape(self.size, self.size, self.channels).transpose(2, 0, 1)


@runtime_checkable
class ReadableImage(Example, Protocol):
    """An example that has an image."""

    @property
    def read(self) -> Callable[[], PIL.Image.Image]:
        """Decodes the image."""


def is_damaged(example: ReadableImage, read: Callable[[], object] | None = None) -> bool:
    """Returns whether the image of an example cannot be decoded; one that is composed always can.

    `read` decodes it where its pixels are kept. Otherwise a JPEG file is decoded at an eighth of its size, which reads
    all of the file in a part of the time.
    """
    if getattr(example, "identity", None) is not None:
        return False
    try:
        if read is None:
            in_8_bits(read_shrunk(example.read, lambda size: 1 / 8))
        else:
            read()
    except DamagedImage:
        return True
    return False


def report_damaged(examples: Sequence[ReadableImage]) -> str:
    """One line that names images that were left out; empty where there are none."""
    if not examples:
        return ""
    names = [example.place for example in examples[:LISTED]]
    more = f" and {len(examples) - LISTED:,} more" if len(examples) > LISTED else ""
    what = "image" if len(examples) == 1 else "images"
    return f"left out: {len(examples):,} {what} that cannot be read: {', '.join(names)}{more}"


@dataclass(frozen=True)
class LabelledImage:
    """An image and its label; `place` says where it comes from."""

    place: str
    label: str
    read: Callable[[], PIL.Image.Image] = field(repr=False)
    """Decodes the image. Raises UserError where it is damaged."""
    file: Path | None = None
    """The file that `read` decodes, if there is one."""

    def content(self) -> bytes:
        """The label, and the bytes of the file or all pixels."""
        if self.file is not None:
            return f"{self.label}\0".encode() + self.file.read_bytes()
        image = self.read()
        return f"{self.label}\0{image.mode}{image.size}\0".encode() + image.tobytes()


def labelled_images(paths: Paths, label: Column = LABEL) -> Dataset[LabelledImage]:
    """A folder with one folder of images for each class, or a table with `path<TAB>label` on each line.

    `label` is the second column of the table, whose paths are relative to its folder. Raises UserError for anything
    else, and for missing images.
    """
    paths = as_paths(paths)
    if len(paths) != 1:
        raise UserError(f"labelled images are one folder of class folders, or one table; {len(paths)} were given")
    lines: list[int | None] | None = None if paths[0].is_dir() else []
    examples = _of_folder(paths[0]) if lines is None else _of_table(paths[0], label, lines)
    if not examples:
        raise UserError(f"{paths[0]}: there is no labelled image in it")
    return Dataset(paths[0].name or str(paths[0]), examples, "images", [_count], lines)


def unlabelled_images(paths: Sequence[Path]) -> Dataset[LabelledImage]:
    """All images in folders and the folders in them. Raises UserError for a path that is not a folder."""
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            raise UserError(f"{path} is not a folder of images")
        files += images_below(path)
    if not files:
        raise UserError(f"{' and '.join(map(str, paths))}: there is no image in it")
    return Dataset(paths[0].name or str(paths[0]), [image_of_file(file) for file in files], "images")


def images_of_arrays(name: str, pixels: np.ndarray, labels: Sequence[str]) -> Dataset[LabelledImage]:
    """Grey (N, h, w) or colour (N, h, w, 3) images in 8 bits."""

    def reader(number: int) -> Callable[[], PIL.Image.Image]:
        return lambda: PIL.Image.fromarray(pixels[number])

    examples = [LabelledImage(f"image {n + 1}", label, reader(n)) for n, label in enumerate(labels)]
    return Dataset(name, examples, "images", [_count])


def _count(examples: Iterable[LabelledImage]) -> str:
    """Like "300 cat, 200 dog and 3 labels more"."""
    counts = Counter(example.label for example in examples)
    shown = ", ".join(f"{counts[label]:,} {label}" for label in sorted(counts)[:5])
    return shown + (f" and {len(counts) - 5} labels more" if len(counts) > 5 else "")


def images_below(folder: Path) -> list[Path]:
    """The images in a folder and its folders, in alphabetical order."""
    return files_below(folder, ENDINGS)


def _of_folder(folder: Path) -> list[LabelledImage]:
    examples = [image_of_file(file, label) for label, files in class_folders(folder, ENDINGS) for file in files]
    if not examples:
        raise UserError(f"{folder} has no images: it needs one folder for each class, with the images of the class")
    return examples


def _of_table(path: Path, column: Column, lines: list[int | None]) -> list[LabelledImage]:
    examples, labels = [], dict[Path, str]()
    for row in without_empty(DataTable(path, (IMAGE, column)), lines):
        name, label = row.cells
        file = listed_beside(path.parent, name, f"{path}, {row.place}", IMAGE_FOLDERS)
        if (other := labels.setdefault(file, label)) != label:
            raise UserError(f"{path}, {row.place}: {file} has the label '{label}', but '{other}' before")
        examples.append(image_of_file(file, label))
    return examples


def image_of_file(path: Path, label: str = "") -> LabelledImage:
    """Raises UserError for a file that is too large."""
    check_file(path, LARGEST_FILE)
    return LabelledImage(str(path), label, FileReader(path), path)
