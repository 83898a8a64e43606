"""RandAugment: a few operations on each image, drawn evenly from fourteen (Cubuk et al. 2020).

https://arxiv.org/abs/1909.13719
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import PIL.Image
from PIL import ImageEnhance, ImageOps

MOST = 30
"""Greatest magnitude."""

Operation = Callable[[PIL.Image.Image, float, np.random.Generator], PIL.Image.Image]
"""Changes an image by a share of the most that it may change, from 0 to 1."""


def _warp(image: PIL.Image.Image, row: int, column: int, by: float) -> PIL.Image.Image:
    """An affine transformation with one of its coefficients changed; what was outside is black."""
    matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    matrix[row][column] += by
    return image.transform(image.size, PIL.Image.Transform.AFFINE, [*matrix[0], *matrix[1]])


def _signed(share: float, generator: np.random.Generator) -> float:
    return share if generator.random() < 0.5 else -share


def rotate(image: PIL.Image.Image, share: float, generator: np.random.Generator) -> PIL.Image.Image:
    """By up to 30 degrees."""
    return image.rotate(30 * _signed(share, generator))


def shear(image: PIL.Image.Image, share: float, generator: np.random.Generator, axis: int) -> PIL.Image.Image:
    """By up to 0.3 pixels a pixel."""
    return _warp(image, axis, 1 - axis, 0.3 * _signed(share, generator))


def move(image: PIL.Image.Image, share: float, generator: np.random.Generator, axis: int) -> PIL.Image.Image:
    """By up to 0.45 of the side."""
    return _warp(image, axis, 2, 0.45 * image.size[axis] * _signed(share, generator))


def enhance(image: PIL.Image.Image, share: float, generator: np.random.Generator, kind: type) -> PIL.Image.Image:
    """A property multiplied by 0.1 to 1.9."""
    return kind(image).enhance(1 + 0.9 * _signed(share, generator))


def posterize(image: PIL.Image.Image, share: float, generator: np.random.Generator) -> PIL.Image.Image:
    """Eight to four bits for each channel."""
    return ImageOps.posterize(image, 8 - round(4 * share))


def solarize(image: PIL.Image.Image, share: float, generator: np.random.Generator) -> PIL.Image.Image:
    """Bright pixels inverted: at most those from 0 on."""
    return ImageOps.solarize(image, round(256 * (1 - share)))


OPERATIONS: dict[str, Operation] = {
    "identity": lambda image, share, generator: image,
    "autocontrast": lambda image, share, generator: ImageOps.autocontrast(image),
    "equalize": lambda image, share, generator: ImageOps.equalize(image),
    "rotate": rotate,
    "solarize": solarize,
    "colour": partial(enhance, kind=ImageEnhance.Color),
    "posterize": posterize,
    "contrast": partial(enhance, kind=ImageEnhance.Contrast),
    "brightness": partial(enhance, kind=ImageEnhance.Brightness),
    "sharpness": partial(enhance, kind=ImageEnhance.Sharpness),
    "shear-x": partial(shear, axis=0),
    "shear-y": partial(shear, axis=1),
    "move-x": partial(move, axis=0),
    "move-y": partial(move, axis=1),
}


def random_augment(pixels: np.ndarray, count: int, magnitude: float, generator: np.random.Generator) -> np.ndarray:
    """Each image of (N, C, h, w), in 8 bits and with one channel or three, after `count` operations."""
    operations, found = [*OPERATIONS.values()], np.empty_like(pixels)
    for place, choice in enumerate(generator.integers(len(operations), size=(len(pixels), count))):
        grey = len(pixels[place]) == 1
        image = PIL.Image.fromarray(
            pixels[place, 0] if grey else np.ascontiguousarray(pixels[place].transpose(1, 2, 0))
        )
        for number in choice:
            image = operations[number](image, magnitude / MOST, generator)
        changed = np.asarray(image)
        found[place] = changed if grey else changed.transpose(2, 0, 1)
    return found
