"""Random changes of images in training: (N, C, h, w) in 8 bits. All that is random comes from one generator."""

import math
from dataclasses import dataclass
from typing import NamedTuple

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


MOST_RATIO = 4 / 3
"""Width of a random part of an image divided by its height at most, and the inverse at least (Szegedy et al. 2015)."""


class Mixed(NamedTuple):
    """Images with a part of others of the batch in them."""

    pixels: Float[Tensor, "B C h w"]
    partners: np.ndarray | None
    """The number of the other one of each; None where nothing is mixed."""
    share: float
    """The share of the others, at most a half."""


@dataclass(frozen=True)
class RandomPart:
    """A random part of an image whose size is not known yet."""

    area: float
    """Its share of the area."""
    ratio: float
    """Its width divided by its height."""
    place: tuple[float, float]
    """Where it lies across and down, from 0 to 1."""

    @classmethod
    def draw(cls, least: float, generator: np.random.Generator) -> "RandomPart":
        """One of at least this share of the area."""
        ratio = np.exp(generator.uniform(-np.log(MOST_RATIO), np.log(MOST_RATIO)))
        return cls(generator.uniform(least, 1), float(ratio), (generator.random(), generator.random()))

    def box(self, width: int, height: int) -> tuple[float, float, float, float]:
        """Left, top, right and bottom in an image of this size, within which the part is cut off."""
        across = min(width, (width * height * self.area * self.ratio) ** 0.5)
        down = min(height, (width * height * self.area / self.ratio) ** 0.5)
        left, top = self.place[0] * (width - across), self.place[1] * (height - down)
        return left, top, left + across, top + down

    def enlarged(self, side: int, size: tuple[int, int]) -> float:
        """How many times as large the part is to become, for a square of this side; the same if the image is turned."""
        (left, top, right, bottom), turned = self.box(*size), self.box(size[1], size[0])
        return side / min(right - left, bottom - top, turned[2] - turned[0], turned[3] - turned[1])


@dataclass(kw_only=True)
class Augmentation:
    """Random changes of images in training."""

    augment: bool = True
    """Move and flip images in training."""
    move: float = 0.125
    """How far images are moved at most, as a share of their side."""
    crop: float | None = None
    """In training, cut a random part of at least this share of its area out of each whole image, in place of moving it;
    0.08 is usual for photographs."""
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
    cutmix: float = 0.0
    """In training, replace a rectangle of each image by that of another one, and mix their labels, by shares from such
    a distribution; 1 is usual. With mixup too, half of the batches are mixed in each way."""
    repeats: int = 1
    """How often each image of a batch is in it, each time changed in another way; an epoch then has a part of the
    images (Hoffer et al. 2020)."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        for name in ("move", "colour", "erase"):
            if not 0 <= (share := getattr(self, name)) <= 1:
                raise UserError(f"{name} is {share:g}, but must be from 0 to 1")
        if self.crop is not None and not 0 < self.crop <= 1:
            raise UserError(f"crop is {self.crop:g}, but must be above 0 and at most 1")
        at_least(0, "operations", self.operations)
        at_least(1, "repeats", self.repeats)
        if not 0 <= self.magnitude <= MOST:
            raise UserError(f"magnitude is {self.magnitude:g}, but must be from 0 to {MOST}")
        for name in ("mixup", "cutmix"):
            if not 0 <= (strength := getattr(self, name)) < math.inf:
                raise UserError(f"{name} is {strength:g}, but must be at least 0")

    def changed(self, pixels: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """The images, each by itself changed."""
        if self.augment:
            pixels = augment(pixels, self.move if self.crop is None else 0.0, generator)
        if self.operations:
            pixels = random_augment(pixels, self.operations, self.magnitude, generator)
        if self.colour:
            pixels = recolour(pixels, self.colour, generator)
        return erase(pixels, self.erase, generator) if self.erase else pixels

    def mixed(self, pixels: Float[Tensor, "B C h w"], generator: np.random.Generator) -> Mixed:
        """The changed images, perhaps mixed with others of the batch."""
        ways = [(mixup, self.mixup), (cutmix, self.cutmix)]
        chosen = [(way, strength) for way, strength in ways if strength]
        if not chosen:
            return Mixed(pixels, None, 0.0)
        way, strength = chosen[generator.integers(len(chosen))] if len(chosen) > 1 else chosen[0]
        return way(pixels, strength, generator)


def augment(pixels: np.ndarray, move: float, generator: np.random.Generator) -> np.ndarray:
    """Each image of (N, C, h, w) moved by up to a share of its side, its border repeated, and flipped half of the
    time."""
    side = pixels.shape[-1]
    reach = int(side * move)
    border = (reach, reach)
    padded = np.pad(pixels, ((0, 0), (0, 0), border, border), mode="edge") if reach else pixels
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


def mixup(pixels: Float[Tensor, "B C h w"], strength: float, generator: np.random.Generator) -> Mixed:
    """Images with a share of other ones of the batch added.

    The share follows a beta distribution with both parameters `strength` (Zhang et al. 2018), one for all of a batch.
    """
    share = _draw_share(strength, generator)
    partners = generator.permutation(len(pixels))
    return Mixed(torch.lerp(pixels, pixels[partners], share), partners, share)


def cutmix(pixels: Float[Tensor, "B C h w"], strength: float, generator: np.random.Generator) -> Mixed:
    """Images with a rectangle of other ones in its place (Yun et al. 2019, https://arxiv.org/abs/1905.04899).

    Its share of the area follows the distribution of `mixup`, before what is outside the image is cut off; it is the
    same rectangle for all of a batch.
    """
    height, width = pixels.shape[-2:]
    side = _draw_share(strength, generator) ** 0.5
    partners = generator.permutation(len(pixels))
    rows, columns = (_interval(side, length, generator) for length in (height, width))
    mixed = pixels.clone()
    mixed[..., rows, columns] = pixels[partners][..., rows, columns]
    return Mixed(mixed, partners, (rows.stop - rows.start) * (columns.stop - columns.start) / (height * width))


def _draw_share(strength: float, generator: np.random.Generator) -> float:
    share = generator.beta(strength, strength)
    return min(share, 1 - share)


def _interval(share: float, length: int, generator: np.random.Generator) -> slice:
    """A share of a side with its middle anywhere, as far as it is inside."""
    middle, reach = generator.uniform(0, length), share * length / 2
    return slice(max(0, round(middle - reach)), min(length, round(middle + reach)))
