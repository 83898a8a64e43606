"""Random changes of images in training: (N, C, h, w) in 8 bits. All that is random comes from one generator."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from foveate.data.images.random_augment import MOST, random_augment
from foveate.errors import UserError, at_least

LEAST_AREA, MOST_AREA = 0.02, 0.33
"""Share of an image that is erased (Zhong et al. 2020, https://arxiv.org/abs/1708.04896)."""

LONGEST = 3.3
"""Longest side of what is erased, divided by its shorter one."""

LUMA = np.array([0.299, 0.587, 0.114], np.float32)[:, None, None]
"""How bright red, green and blue look."""


@dataclass(kw_only=True)
class Augmentation:
    """Random changes of images in training."""

    augment: bool = True
    """Move and flip images in training."""
    move: float = 0.125
    """How far images are moved at most, as a share of their side."""
    colour: float = 0.0
    """In training, change brightness, contrast and saturation by up to this share."""
    erase: float = 0.0
    """Share of the images of which a random rectangle is replaced by noise in training."""
    operations: int = 0
    """How many operations of RandAugment change each image in training: rotations, shears, contrast, ..."""
    magnitude: float = 9.0
    """How far these go, from 0 to 30."""
    mixup: float = 0.0
    """In training, mix images and their labels in pairs, by shares from a beta distribution with this parameter; 0.2
    is usual, 0 mixes nothing."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        for name in ("move", "colour", "erase"):
            if not 0 <= (share := getattr(self, name)) <= 1:
                raise UserError(f"{name} is {share:g}, but must be from 0 to 1")
        at_least(0, "operations", self.operations)
        if not 0 <= self.magnitude <= MOST:
            raise UserError(f"magnitude is {self.magnitude:g}, but must be from 0 to {MOST}")
        if not 0 <= self.mixup < math.inf:
            raise UserError(f"mixup is {self.mixup:g}, but must be at least 0")

    def changed(self, pixels: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """The images, each by itself changed."""
        if self.augment:
            pixels = augment(pixels, self.move, generator)
        if self.operations:
            pixels = random_augment(pixels, self.operations, self.magnitude, generator)
        if self.colour:
            pixels = recolour(pixels, self.colour, generator)
        return erase(pixels, self.erase, generator) if self.erase else pixels


def augment(pixels: np.ndarray, move: float, generator: np.random.Generator) -> np.ndarray:
    """Each image of (N, C, h, w) moved by up to a share of its side, its border repeated, and flipped half of the
    time."""
    side = pixels.shape[-1]
    reach = int(side * move)
    padded = np.pad(pixels, ((0, 0), (0, 0), (reach, reach), (reach, reach)), mode="edge")
    moved = np.empty_like(pixels)
    tops, lefts = generator.integers(0, 2 * reach + 1, (2, len(pixels)))
    flips = generator.random(len(pixels)) < 0.5
    for place, (top, left, flip) in enumerate(zip(tops, lefts, flips, strict=True)):
        crop = padded[place, :, top : top + side, left : left + side]
        moved[place] = crop[..., ::-1] if flip else crop
    return moved


def recolour(pixels: np.ndarray, strength: float, generator: np.random.Generator) -> np.ndarray:
    """Brightness, contrast and, of colour images, saturation of each image multiplied by 1 - `strength` to 1 +
    `strength`."""
    factors = generator.uniform(1 - strength, 1 + strength, (3, len(pixels), 1, 1, 1)).astype(np.float32)
    x = pixels.astype(np.float32) * factors[0]
    mean = x.mean((1, 2, 3), keepdims=True)
    x = mean + (x - mean) * factors[1]
    if pixels.shape[1] == len(LUMA):
        grey = (x * LUMA).sum(1, keepdims=True)
        x = grey + (x - grey) * factors[2]
    return x.round().clip(0, 255).astype(np.uint8)


def erase(pixels: np.ndarray, share: float, generator: np.random.Generator) -> np.ndarray:
    """A share of the images with a random rectangle of noise."""
    height, width = pixels.shape[2:]
    erased = pixels.copy()
    for image in np.flatnonzero(generator.random(len(pixels)) < share):
        area = height * width * generator.uniform(LEAST_AREA, MOST_AREA)
        ratio = np.exp(generator.uniform(-np.log(LONGEST), np.log(LONGEST)))
        rows = int(np.clip(round((area * ratio) ** 0.5), 1, height))
        columns = int(np.clip(round((area / ratio) ** 0.5), 1, width))
        top, left = generator.integers(0, height - rows + 1), generator.integers(0, width - columns + 1)
        noise = generator.integers(0, 256, (pixels.shape[1], rows, columns), dtype=np.uint8)
        erased[image, :, top : top + rows, left : left + columns] = noise
    return erased


def mixup(
    pixels: Float[Tensor, "B C h w"], strength: float, generator: np.random.Generator
) -> tuple[Float[Tensor, "B C h w"], np.ndarray, float]:
    """Images with a share of other ones of the batch added; the numbers of those, and the share, at most a half.

    The share follows a beta distribution with both parameters `strength` (Zhang et al. 2018), one for all of a batch.
    """
    share = generator.beta(strength, strength)
    share = min(share, 1 - share)
    partners = generator.permutation(len(pixels))
    return torch.lerp(pixels, pixels[partners], share), partners, share
