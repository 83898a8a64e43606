"""Labelled images: folders of classes, a table of paths, or arrays of a named source, as 8-bit pixels in memory."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import PIL.Image
from PIL import ImageOps
from PIL.Image import Transpose

from foveate.data.dataset import Dataset, Example
from foveate.data.lines import Paths, as_paths, read_sentences
from foveate.errors import UserError
from foveate.files import is_file

ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
"""File names that are taken for images in a folder."""

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
"""What files are decoded as, whatever their names: Pillow gives other formats, such as EPS, to programs."""

ORIENTATION = 0x0112
TRANSPOSE_BY_ORIENTATION: dict[Any, Transpose] = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}
"""The transposition for each EXIF orientation. Pillow's own function fails if other tags are damaged."""

SIDEWAYS = (Transpose.TRANSPOSE, Transpose.ROTATE_270, Transpose.TRANSVERSE, Transpose.ROTATE_90)
"""Transpositions that exchange width and height."""

NOT_READ = ("F", "LAB", "HSV")
"""Pillow's modes of images whose pixels have no agreed range, or that it does not convert."""

LARGEST_IMAGE = 50_000_000
"""Pixels of the largest image that is decoded."""

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
        image = flat(turn_upright(image)).convert("L" if self.channels == 1 else "RGB")
        if image.size != (self.size, self.size):
            image = ImageOps.fit(image, (self.size, self.size), PIL.Image.Resampling.BICUBIC)
        return np.asarray(image).reshape(self.size, self.size, self.channels).transpose(2, 0, 1)


class DamagedImage(UserError):
    """A file that is no image, or that is too large to decode."""


def flat(image: PIL.Image.Image) -> PIL.Image.Image:
    """The image with 8 bits for each channel, on white where it is transparent. Of 16 bits of grey the upper ones
    count."""
    if image.mode.startswith("I"):
        grey = np.asarray(image).clip(0, 2**16 - 1) / 257
        return PIL.Image.fromarray(grey.round().astype(np.uint8))
    if not image.has_transparency_data:
        return image
    image = image.convert("RGBA")
    return PIL.Image.alpha_composite(PIL.Image.new("RGBA", image.size, "white"), image)


def turn_upright(image: PIL.Image.Image) -> PIL.Image.Image:
    """The image as its metadata say that it is to be turned."""
    turn = _turn(image.getexif)
    return image if turn is None else image.transpose(turn)


def _turn(read_metadata: Callable[[], PIL.Image.Exif]) -> Transpose | None:
    """How an image is to be turned; None for damaged metadata too."""
    with warnings.catch_warnings(), suppress(SyntaxError, ValueError, OSError):
        warnings.simplefilter("ignore")
        return TRANSPOSE_BY_ORIENTATION.get(read_metadata().get(ORIENTATION, 1))
    return None


def read_image(path: Path) -> PIL.Image.Image:
    """The decoded image of a file, of an animation the first. Raises UserError for a missing file, DamagedImage for
    what is no image or too large."""
    with _opened(path) as image:
        image.load()
    return image


def read_size_and_mode(path: Path) -> tuple[tuple[int, int], str]:
    """Width and height of the image of a file, and Pillow's mode, without decoding it. Raises as `read_image`."""
    with _opened(path) as image:
        return image.size, image.mode


def read_sizes(path: Path) -> tuple[tuple[int, int], tuple[int, int]]:
    """Width and height of the image of a file as it is stored, and as its metadata turn it. Raises as `read_image`."""
    with _opened(path) as image:
        width, height = image.size
        turn = _turn(partial(PIL.Image.Image.getexif, image))  # that of PNG images would decode all pixels
        return (width, height), (height, width) if turn in SIDEWAYS else (width, height)


@contextmanager
def _opened(path: Path) -> Iterator[PIL.Image.Image]:
    """The image of a file; whatever is wrong with it is a UserError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of valid files with odd metadata
            with PIL.Image.open(path, formats=FORMATS) as image:
                if image.width * image.height > LARGEST_IMAGE:
                    raise DamagedImage(f"{path} has {image.width:,} x {image.height:,} pixels: too many to decode")
                if image.mode in NOT_READ:
                    raise DamagedImage(f"{path} has pixels of a kind that is not read: save it with 8 or 16 bits")
                yield image
    except FileNotFoundError:
        raise UserError(f"there is no file {path}") from None
    except PIL.Image.DecompressionBombError:
        raise DamagedImage(f"{path} has more than {LARGEST_IMAGE:,} pixels: too many to decode") from None
    except (OSError, SyntaxError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise DamagedImage(f"{path} cannot be read as an image: {' '.join(str(error).split())}") from None


@runtime_checkable
class ReadableImage(Example, Protocol):
    """An example that has an image."""

    @property
    def read(self) -> Callable[[], PIL.Image.Image]:
        """Decodes the image."""


def is_damaged(example: ReadableImage) -> bool:
    """Whether the image of an example cannot be decoded."""
    try:
        example.read()
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


def labelled_images(paths: Paths) -> Dataset[LabelledImage]:
    """A folder with one folder of images for each class, or a table with `path<TAB>label` on each line.

    Paths of a table are relative to its folder. Raises UserError for anything else, and for missing images.
    """
    paths = as_paths(paths)
    if len(paths) != 1:
        raise UserError(f"labelled images are one folder of class folders, or one table; {len(paths)} were given")
    examples = _of_folder(paths[0]) if paths[0].is_dir() else _of_table(paths[0])
    if not examples:
        raise UserError(f"{paths[0]}: there is no labelled image in it")
    return Dataset(paths[0].name or str(paths[0]), examples, "images", [_count(examples)])


def images_of_arrays(name: str, pixels: np.ndarray, labels: Sequence[str]) -> Dataset[LabelledImage]:
    """Grey (N, h, w) or colour (N, h, w, 3) images in 8 bits."""

    def reader(number: int) -> Callable[[], PIL.Image.Image]:
        return lambda: PIL.Image.fromarray(pixels[number])

    examples = [LabelledImage(f"image {n + 1}", label, reader(n)) for n, label in enumerate(labels)]
    return Dataset(name, examples, "images", [_count(examples)])


def _count(examples: Sequence[LabelledImage]) -> str:
    """Like "300 cat, 200 dog and 3 labels more"."""
    counts = Counter(example.label for example in examples)
    shown = ", ".join(f"{counts[label]:,} {label}" for label in sorted(counts)[:5])
    return shown + (f" and {len(counts) - 5} labels more" if len(counts) > 5 else "")


def images_below(folder: Path) -> list[Path]:
    """The images in a folder and its folders, in alphabetical order; links to folders are not followed."""
    return sorted(file for file in folder.rglob("*") if file.suffix.lower() in ENDINGS and file.is_file())


def _of_folder(folder: Path) -> list[LabelledImage]:
    classes = sorted(place for place in folder.iterdir() if place.is_dir() and not place.name.startswith("."))
    examples = [image_of_file(file, place.name) for place in classes for file in images_below(place)]
    if not examples:
        raise UserError(f"{folder} has no images: it needs one folder for each class, with the images of the class")
    return examples


def _of_table(path: Path) -> list[LabelledImage]:
    examples, labels = [], dict[Path, str]()
    for number, line in enumerate(read_sentences(path), 1):
        if not line:
            continue
        if line.count("\t") != 1:
            raise UserError(f"{path}, line {number}: one tab must stand between the path of an image and its label")
        name, label = line.split("\t")
        file = path.parent / name.strip()
        if not is_file(file):
            raise UserError(f"{path}, line {number}: there is no file {file}")
        if (other := labels.setdefault(file, label.strip())) != label.strip():
            raise UserError(f"{path}, line {number}: {file} has the label '{label.strip()}', but '{other}' before")
        examples.append(image_of_file(file, label.strip()))
    return examples


def image_of_file(path: Path, label: str = "") -> LabelledImage:
    return LabelledImage(str(path), label, lambda: read_image(path), path)
