"""The format of a training's images, and their pixels as numbers."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from foveate.data.images.decoding import DamagedImage, read_size_and_mode
from foveate.data.images.labelled import LARGEST_SIDE, ImageFormat, ReadableImage

MIDDLE, REACH = 0.5, 0.25
"""The mean and the deviation by which foveate standardises pixels from 0 to 1."""

GREY = {"1", "L", "LA", "F", "I", "I;16", "I;16B", "I;16L"}
"""Pillow's modes of images without colour."""


def choose_format(images: Iterable[ReadableImage], size: int | None, otherwise: int = LARGEST_SIDE) -> ImageFormat:
    """Grey where all images are; their own size where all are square and of one size, at most 256, and else the last
    one. Damaged ones do not count."""
    sizes, modes = set(), set()
    for example in images:
        try:
            extent, mode = _size_and_mode(example)
        except DamagedImage:
            continue
        sizes.add(extent)
        modes.add(mode)
        if len(sizes) > 1 and not modes <= GREY:
            break  # further images change nothing
    own = sizes.pop() if len(sizes) == 1 else (0, 1)
    fitting = own[0] if own[0] == own[1] <= 256 else otherwise
    return ImageFormat(size or fitting, 1 if modes <= GREY else 3)


def _size_and_mode(example: ReadableImage) -> tuple[tuple[int, int], str]:
    if (file := getattr(example, "file", None)) is not None:
        return read_size_and_mode(file)
    image = example.read()
    return image.size, image.mode


def normalize(
    pixels: np.ndarray, mean: Sequence[float] = (MIDDLE,), deviation: Sequence[float] = (REACH,)
) -> Float[Tensor, "B C h w"]:
    """8-bit pixels as numbers from about -2 to 2, channels last in memory, as convolutions read them fastest. The mean
    and the deviation are those of pixels from 0 to 1, of each channel or of all."""
    scale = torch.tensor([255 * one for one in deviation])[:, None, None]
    shift = torch.tensor([one / other for one, other in zip(mean, deviation, strict=True)])[:, None, None]
    numbers = torch.from_numpy(pixels).float().div_(scale).sub_(shift)
    return numbers.contiguous(memory_format=torch.channels_last)
