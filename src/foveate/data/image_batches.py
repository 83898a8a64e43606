"""Batches of images: decoded once, kept as 8-bit pixels, shuffled and augmented by seed, epoch and place."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from foveate.contracts import Batch
from foveate.data.images import LARGEST_SIDE, ImageFormat, LabelledImages
from foveate.errors import UserError

GREY = {"L", "1"}
"""Pillow's modes of images without colour."""

LARGEST = 4_000_000_000
"""Bytes of decoded images that are kept in memory."""


def choose_format(images: LabelledImages, size: int | None) -> ImageFormat:
    """Grey where all images are; their own size where all are square and of one size, at most 256."""
    sizes, modes = set(), set()
    for example in images:
        image = example.read()
        sizes.add(image.size)
        modes.add(image.mode)
        if len(sizes) > 1 and not modes <= GREY:
            break  # further images change nothing
    own = sizes.pop() if len(sizes) == 1 else (0, 1)
    fitting = own[0] if own[0] == own[1] <= 256 else LARGEST_SIDE
    return ImageFormat(size or fitting, 1 if modes <= GREY else 3)


def decode(images: LabelledImages, image_format: ImageFormat) -> np.ndarray:
    """All images as (N, C, h, w) in 8 bits. Raises UserError when they take more memory than is sensible."""
    count = images.check().kept
    if (size := count * image_format.channels * image_format.size**2) > LARGEST:
        raise UserError(
            f"{images.name}: {count:,} images take {size / 1e9:.0f} GB at size {image_format.size}: lower --size"
        )
    pixels = np.empty((count, image_format.channels, image_format.size, image_format.size), np.uint8)
    for place, example in enumerate(images):
        pixels[place] = image_format.pixels(example.read())
    return pixels


def normalize(pixels: np.ndarray) -> Float[Tensor, "B C h w"]:
    """8-bit pixels as numbers from about -2 to 2, channels last in memory, as convolutions read them fastest."""
    return (torch.from_numpy(pixels).float() / 63.75 - 2).contiguous(memory_format=torch.channels_last)


class ImageBatches:
    """Batches to train an image classifier on: inputs `pixels` (B, C, h, w), labels (B, 1).

    With `augment`, each image is moved by up to an eighth of its side in both directions and flipped half of the time.
    """

    def __init__(
        self,
        images: LabelledImages,
        image_format: ImageFormat,
        labels: Sequence[str],
        size: int,
        seed: int,
        augment: bool,
    ) -> None:
        """`labels` are the classes in their order; `size` is the number of images of a batch."""
        self.name, self._size, self._seed, self._augment = images.name, size, seed, augment
        numbers = {label: number for number, label in enumerate(labels)}
        self._pixels = decode(images, image_format)
        self._labels = np.array([numbers[label] for label in images.labels()], np.int64)

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, counted from 0, without the first `skip`."""
        order = np.random.default_rng((self._seed, number)).permutation(len(self._labels))
        for place in range(skip, len(self)):
            chosen = order[place * self._size : (place + 1) * self._size]
            pixels = self._pixels[chosen]
            if self._augment:
                pixels = augment(pixels, np.random.default_rng((self._seed, number, place)))
            labels = torch.from_numpy(self._labels[chosen])[:, None]
            yield Batch({"pixels": normalize(pixels)}, labels, f"batch {place + 1} of {self.name}")

    def __len__(self) -> int:
        return -(-len(self._labels) // self._size)


def augment(pixels: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Each image of (N, C, h, w) moved, its border repeated, and flipped half of the time."""
    side = pixels.shape[-1]
    reach = side // 8
    padded = np.pad(pixels, ((0, 0), (0, 0), (reach, reach), (reach, reach)), mode="edge")
    moved = np.empty_like(pixels)
    tops, lefts = generator.integers(0, 2 * reach + 1, (2, len(pixels)))
    flips = generator.random(len(pixels)) < 0.5
    for place, (top, left, flip) in enumerate(zip(tops, lefts, flips, strict=True)):
        crop = padded[place, :, top : top + side, left : left + side]
        moved[place] = crop[..., ::-1] if flip else crop
    return moved
