"""Files of images are decoded: which are read, how they are turned, and with 8 bits for each channel."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from PIL.Image import Transpose

from foveate.data.images import jpeg_scans
from foveate.data.images.jpeg_scans import has_too_many_scans
from foveate.errors import UserError
from foveate.limits import check_file

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

METADATA = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp")
"""Where Pillow keeps what says how an image is to be turned."""

NOT_READ = ("F", "LAB", "HSV")
"""Pillow's modes of images whose pixels have no agreed range, or that it does not convert."""

LARGEST_FILE = 2**29
"""Bytes of the largest file of an image."""

LARGEST_IMAGE = 50_000_000
"""Pixels of the largest image that is decoded."""


class DamagedImage(UserError):
    """A file that is not an image, or that is too large to decode."""


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


def read_image(path: Path) -> PIL.Image.Image:
    """The decoded image of a file, of an animation the first. Raises UserError for a missing file, DamagedImage for
    what is not an image or too large."""
    with _open_image(path) as image:
        if image.format in jpeg_scans.FORMATS and has_too_many_scans(path.read_bytes()):
            raise DamagedImage(f"{path} has more than {jpeg_scans.MOST} scans, which would take long to decode")
        image.load()
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
