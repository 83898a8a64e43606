"""Images that are decoded when they are first read, and kept in memory that all processes of a training share.

Where they do not fit, each is decoded whenever it is read: a JPEG file no larger than is needed.
"""

import mmap
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import Lock
from typing import Any, NamedTuple

import numpy as np
import PIL.Image

from foveate.data.dataset import Dataset, Prepared
from foveate.data.images.labelled import is_damaged, report_damaged
from foveate.errors import UserError

Size = tuple[int, int]
"""Width and height in pixels."""

Read = Callable[[], PIL.Image.Image]
"""Decodes an image."""

MOST_KEPT = 2**30
"""Bytes of the decoded images of a training that are kept in memory."""


class Unread(NamedTuple):
    """An image that is decoded whenever it is asked for: all of them do not fit into memory."""

    read: Read


class SizedImage(NamedTuple):
    """An image, and the size that it had before it was scaled."""

    image: PIL.Image.Image
    size: Size


class KeptImages(Sequence[Callable[[], SizedImage]]):
    """Functions that give the images of some readers, each decoded once by whichever process asks first."""

    def __init__(self, reads: Sequence[Read], decode: Callable[[Read], SizedImage], channels: int, largest: int):
        """`decode` gives images of 1 or 3 channels, and of at most `largest` pixels."""
        self._reads, self._decode, self._channels = reads, decode, channels
        self._sizes = np.frombuffer(mmap.mmap(-1, len(reads) * 16), np.int32).reshape(-1, 4)
        self._pixels = np.frombuffer(mmap.mmap(-1, len(reads) * channels * largest), np.uint8).reshape(len(reads), -1)
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._reads)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        return _Kept(self, range(len(self))[number])

    def read(self, number: int) -> SizedImage:
        """An image with this number, which is decoded where no process has done so."""
        with self._lock:
            width, height, *before = self._sizes[number].tolist()
        if not width:
            decoded = self._decode(self._reads[number])
            width, height, *before = *decoded.image.size, *decoded.size
            self._pixels[number, : width * height * self._channels] = np.asarray(decoded.image).reshape(-1)
            with self._lock:  # others see the size when the pixels are there
                self._sizes[number] = width, height, *before
        pixels = self._pixels[number, : width * height * self._channels]
        shape = (height, width) if self._channels == 1 else (height, width, self._channels)
        return SizedImage(PIL.Image.fromarray(pixels.reshape(shape)), (before[0], before[1]))


class _Kept(NamedTuple):
    """One of the images."""

    images: KeptImages
    number: int

    def __call__(self) -> SizedImage:
        return self.images.read(self.number)


def fits_in_memory(count: int, channels: int, largest: int) -> bool:
    """Whether this many images of at most `largest` pixels can be kept."""
    return count * channels * largest <= MOST_KEPT


def undamaged_images(
    dataset: Dataset[Any], decode: Callable[[Read], SizedImage], channels: int, largest: int
) -> Prepared:
    """The images of a dataset that can be decoded: kept where all of them fit into memory, for which each is decoded
    once; otherwise `Unread`.

    `decode` is that of `KeptImages`. Raises UserError where all images are damaged.
    """
    reads, fit = [example.read for example in dataset], fits_in_memory(len(dataset), channels, largest)
    images: Sequence[Any] = KeptImages(reads, decode, channels, largest) if fit else [Unread(read) for read in reads]
    damaged = {
        number: example
        for number, example in enumerate(dataset)
        if is_damaged(example, partial(images.read, number) if isinstance(images, KeptImages) else None)
    }
    if len(damaged) == len(dataset):
        raise UserError(f"{dataset.name}: none of the {len(dataset):,} images can be read")
    kept = [number for number in range(len(dataset)) if number not in damaged]
    return Prepared([images[number] for number in kept], kept, report_damaged([*damaged.values()]), slow=not fit)
