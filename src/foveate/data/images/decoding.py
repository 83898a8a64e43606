"""Files of images are decoded: which are read, how they are turned, and with 8 bits for each channel."""

import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from PIL import features
from PIL.Image import Transpose

from foveate.data.images import jpeg_scans
from foveate.data.images.jpeg_scans import has_too_many_scans
from foveate.errors import UserError
from foveate.limits import check_file

AVIF = ("AVIF",) if "avif" in features.modules and features.check("avif") else ()
"""The format of .avif files, where Pillow was built with it: since 11.3, by default."""

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM", *AVIF)
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

METADATA = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp")
"""Where Pillow keeps what says how an image is to be turned."""

NOT_READ = ("LAB", "HSV")
"""Pillow's modes of images that it does not convert."""

PixelRange = tuple[float, float]
"""The values of pixels that become black and white, for values of more than 8 bits."""

RANGE = "pixel_range"
"""The entry of an image's `info` with the range that its file states."""

FEW_VALUES = 2**12
"""A 16-bit image with no value from here on may hold values of 12 bits."""

_BITS, _LEAST, _MOST = 258, (340, 280), (341, 281)
"""Tags of TIFF files: the bits of a value, the least value and the largest one."""

LARGEST_FILE = 2**29
"""Bytes of the largest file of an image."""

LARGEST_IMAGE = 50_000_000
"""Pixels of the largest image that is decoded."""


class DamagedImage(UserError):
    """A file that is not an image, or that is too large to decode."""


def in_8_bits(image: PIL.Image.Image, pixel_range: PixelRange | None = None) -> PIL.Image.Image:
    """The image with 8 bits for each channel: values of more bits from this range, or that of the file, or all 16 bits.

    Raises DamagedImage for floating-point values of no known range.
    """
    if not image.mode.startswith(("I", "F")):
        return image
    values = np.asarray(image).astype(np.float64)
    pixel_range = pixel_range or image.info.get(RANGE)
    if pixel_range is None and image.mode == "F":
        raise DamagedImage("floating-point pixels of no known range: give --pixel-range LOW HIGH")
    if pixel_range is None and values.size and 0 < values.max() < FEW_VALUES:
        _tell_assumed()
    low, high = pixel_range or (0, 2**16 - 1)
    grey = np.nan_to_num((values - low) / (high - low)).clip(0, 1) * 255
    found = PIL.Image.fromarray(grey.round().astype(np.uint8))
    found.info = {name: value for name, value in image.info.items() if name != RANGE}
    return found


def check_pixel_range(pixel_range: PixelRange | None) -> None:
    """Raise UserError for a range without values."""
    if pixel_range is not None and not -math.inf < pixel_range[0] < pixel_range[1] < math.inf:
        raise UserError(f"pixel_range is {pixel_range[0]:g} to {pixel_range[1]:g}, but LOW must be less than HIGH")


@cache
def _tell_assumed() -> None:
    """Print once what is assumed of images with few of the values of 16 bits."""
    print(
        f"assumed: 16-bit pixels have the range 0 to 65,535, though an image has no value above {FEW_VALUES - 1:,}; if "
        f"they have 12 bits, give --pixel-range 0 {FEW_VALUES - 1}",
        file=sys.stderr,
    )


def _stated_range(image: PIL.Image.Image) -> PixelRange | None:
    """The range of values that a TIFF file states; None for others."""
    tags = getattr(image, "tag_v2", None)
    if tags is None or not image.mode.startswith(("I", "F")):
        return None
    low, high = (
        float(np.ravel([tags[tag] for tag in names if tag in tags] or math.nan)[0]) for names in (_LEAST, _MOST)
    )
    bits = np.ravel(tags.get(_BITS, 16))[0]
    if math.isnan(high) and image.mode != "F" and bits < 16:
        high = 2.0**bits - 1
    low = 0.0 if math.isnan(low) else low
    return (low, high) if low < high else None


def flat(image: PIL.Image.Image) -> PIL.Image.Image:
    """The image with 8 bits for each channel, on white where it is transparent."""
    image = in_8_bits(image)
    if not image.has_transparency_data:
        return image
    image = image.convert("RGBA")
    return PIL.Image.alpha_composite(PIL.Image.new("RGBA", image.size, "white"), image)


def turn_upright(image: PIL.Image.Image) -> PIL.Image.Image:
    """The image as its metadata say that it is to be turned; the result says nothing more, so that it stays so."""
    turn = _turn(image.getexif)
    if turn is None:
        return image
    return keep_as_it_is(image.transpose(turn))


def keep_as_it_is(image: PIL.Image.Image) -> PIL.Image.Image:
    """A copy of the image that says nothing of being turned."""
    copy = image.copy()
    for name in METADATA:
        copy.info.pop(name, None)
    return copy


def _turn(read_metadata: Callable[[], PIL.Image.Exif]) -> Transpose | None:
    """Returns how an image is to be turned; None for damaged metadata too."""
    with warnings.catch_warnings(), suppress(Exception):  # Pillow raises many
        warnings.simplefilter("ignore")
        return TRANSPOSE_BY_ORIENTATION.get(read_metadata().get(ORIENTATION, 1))
    return None


Shrink = Callable[[tuple[int, int]], float]
"""How large an image needs to be, as a share of its width and height, which are given."""


@dataclass(frozen=True)
class FileReader:
    """Decodes the image of a file."""

    file: Path

    def __call__(self) -> PIL.Image.Image:
        return read_image(self.file)

    def shrunk(self, shrink: Shrink) -> PIL.Image.Image:
        """The image, of a JPEG file perhaps a half, a quarter or an eighth as large, but as large as it needs to be."""
        return read_image(self.file, shrink)


def read_shrunk(read: Callable[[], PIL.Image.Image], shrink: Shrink) -> PIL.Image.Image:
    """The image of a reader, smaller where that is faster and it is as large as it needs to be."""
    shrunk: Callable[[Shrink], PIL.Image.Image] | None = getattr(read, "shrunk", None)
    return read() if shrunk is None else shrunk(shrink)


def read_image(path: Path, shrink: Shrink | None = None) -> PIL.Image.Image:
    """The decoded image of a file, of an animation the first. Raises UserError for a missing file, DamagedImage for
    what is not an image or too large. With `shrink`, a JPEG file is decoded no larger than is needed."""
    with _open_image(path) as image:
        if shrink is not None and (share := shrink(image.size)) < 1:
            image.draft(None, (math.ceil(image.width * share), math.ceil(image.height * share)))
        if image.format in jpeg_scans.FORMATS and has_too_many_scans(path.read_bytes()):
            raise DamagedImage(f"{path} has more than {jpeg_scans.MOST} scans, which would take long to decode")
        image.load()
        if (stated := _stated_range(image)) is not None:
            image.info[RANGE] = stated
    return image


def read_size_and_mode(path: Path) -> tuple[tuple[int, int], str]:
    """Width and height of the image of a file, and Pillow's mode, without decoding it. Raises as `read_image`."""
    with _open_image(path) as image:
        return image.size, image.mode


def read_sizes(path: Path) -> tuple[tuple[int, int], tuple[int, int]]:
    """Width and height of the image of a file as `read_image` gives it, and as its metadata turn it. Raises UserError.

    TIFF images are turned already when they are read.
    """
    with _open_image(path) as image:
        width, height = image.size
        if image.format == "TIFF":
            return (width, height), (width, height)
        turn = _turn(partial(PIL.Image.Image.getexif, image))  # that of PNG images would decode all pixels
        return (width, height), (height, width) if turn in SIDEWAYS else (width, height)


@contextmanager
def _open_image(path: Path) -> Iterator[PIL.Image.Image]:
    """The image of a file; whatever is wrong with it is a UserError."""
    try:
        check_file(path, LARGEST_FILE)
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
    except (UserError, MemoryError):
        raise
    except Exception as error:  # Pillow raises errors of many kinds for damaged files
        raise DamagedImage(f"{path} cannot be read as an image: {' '.join(str(error).split())}") from None
