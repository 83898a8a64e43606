"""Decoded images in 8 bits: in memory, or, of image files, in a file of the user's cache that is mapped into memory.

The name of a file in the cache is a digest of the bytes of all image files and of what becomes of them. So images are
decoded once, whatever is trained on them, and again after one of them changed. Several processes share one mapped file,
and images that do not fit into memory are read from the disk as they are needed.
"""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from foveate.data.dataset import Dataset
from foveate.data.images.decoding import DamagedImage, PixelRange
from foveate.data.images.labelled import ImageFormat, ReadableImage, is_damaged
from foveate.data.images.ranged import range_of
from foveate.errors import UserError
from foveate.files import written

FOLDER = "decoded-images"
"""The folder in the cache."""

VERSION = b"2"
"""Changes when images are decoded in another way."""

SMALLEST = 20_000_000
"""Bytes of image files from which on they are worth a file in the cache."""

LARGEST = 4_000_000_000
"""Bytes of decoded images that are kept in memory."""


def decode(images: Dataset[Any], image_format: ImageFormat) -> np.ndarray:
    """All images as (N, C, h, w) in 8 bits; those of files are read-only, from the cache.

    Raises UserError for a damaged image, and when they take more memory or disk than there is.
    """
    shape = len(images), image_format.channels, image_format.size, image_format.size
    size = int(np.prod(shape, dtype=np.int64))
    files = [file for example in images if (file := getattr(example, "file", None)) is not None]
    if len(files) == len(images) and sum(file.stat().st_size for file in files) > SMALLEST:
        return _from_cache(images, files, image_format, shape, size)
    if size > LARGEST:
        raise UserError(
            f"{images.name}: {len(images):,} images take {size / 1e9:.0f} GB at size {image_format.size}: lower --size"
        )
    pixels = np.empty(shape, np.uint8)
    _fill(pixels, images, image_format)
    return pixels


def decode_undamaged(
    images: Dataset[Any], image_format: ImageFormat
) -> tuple[np.ndarray, list[int], list[ReadableImage]]:
    """As `decode`, without images that cannot be decoded; the numbers of the others, and the damaged ones.

    Raises UserError where all are damaged.
    """
    try:
        return decode(images, image_format), [*range(len(images))], []
    except DamagedImage:
        damaged = [is_damaged(example) for example in images]
        if all(damaged):
            raise
    kept = [number for number, bad in enumerate(damaged) if not bad]
    rest = Dataset(images.name, [images[number] for number in kept], images.unit)
    return decode(rest, image_format), kept, [example for example, bad in zip(images, damaged, strict=True) if bad]


def _from_cache(
    images: Dataset[Any], files: Sequence[Path], image_format: ImageFormat, shape: tuple[int, ...], size: int
) -> np.ndarray:
    from foveate.data.sources.cache import cache_folder  # the sources read images too

    place = cache_folder() / FOLDER / f"{_key(files, image_format, range_of(images))}.npy"
    if not place.is_file():
        place.parent.mkdir(parents=True, exist_ok=True)
        if size > (free := shutil.disk_usage(place.parent).free):
            raise UserError(
                f"{images.name}: {len(images):,} images take {size / 1e9:.1f} GB at size {image_format.size}, but "
                f"{place.parent} has only {free / 1e9:.1f} GB left: lower --size, or set FOVEATE_CACHE"
            )
        with written(place) as temporary:
            pixels = np.lib.format.open_memmap(temporary, "w+", np.uint8, shape)
            _fill(pixels, images, image_format)
            pixels.flush()
    return np.load(place, mmap_mode="r")


def _fill(pixels: np.ndarray, images: Dataset[Any], image_format: ImageFormat) -> None:
    for place, example in enumerate(images):
        pixels[place] = image_format.pixels(example.read())


def _key(files: Sequence[Path], image_format: ImageFormat, pixel_range: PixelRange | None) -> str:
    how = f"{image_format.size} {image_format.channels} {pixel_range}"
    found = hashlib.blake2b(VERSION + how.encode(), digest_size=16)
    for file in files:
        found.update(hashlib.blake2b(file.read_bytes(), digest_size=16).digest())
    return found.hexdigest()
