"""Images as tokens: each patch is the nearest entry of a codebook that is learned from images.

K  codes    T  places of an image, row by row
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from foveate.data.codebook import check_codes, learn_codebook, quantize
from foveate.data.images.labelled import ImageFormat
from foveate.errors import UserError

LEARNED_FROM = 4_000
"""Images that the codebook is learned from, at most."""


@dataclass
class Palette:
    """How an image becomes tokens and back."""

    size: int
    """Height and width of the image in pixels."""
    channels: int
    patch: int
    """Height and width of a patch in pixels; 1 makes the codebook a palette of colours."""
    codes: tuple[tuple[float, ...], ...]
    """The codebook (K, channels * patch * patch)."""

    @property
    def side(self) -> int:
        """Patches from left to right, and from top to bottom."""
        return self.size // self.patch

    @property
    def format(self) -> ImageFormat:
        return ImageFormat(self.size, self.channels)

    def check(self) -> None:
        """Raise UserError for values that cannot be."""
        if self.size % self.patch:
            raise UserError(f"patches of {self.patch} pixels do not fit into {self.size}")
        check_codes(self.codes, self.channels * self.patch**2)

    @cached_property
    def _codebook(self) -> np.ndarray:
        return np.array(self.codes, np.float32)

    def encode(self, pixels: np.ndarray) -> np.ndarray:
        """The tokens (N, T) of images (N, C, h, w) in 8 bits."""
        return quantize(patches(pixels, self.patch), self._codebook).reshape(len(pixels), -1)

    def decode(self, tokens: np.ndarray) -> np.ndarray:
        """The images (N, h, w, C) in 8 bits of tokens (N, T)."""
        found = self._codebook[tokens].round().clip(0, 255).astype(np.uint8)
        grid = found.reshape(-1, self.side, self.side, self.channels, self.patch, self.patch)
        return grid.transpose(0, 1, 4, 2, 5, 3).reshape(-1, self.size, self.size, self.channels)


def learn_palette(pixels: np.ndarray, patch: int, codes: int) -> Palette:
    """The palette of images (N, C, h, w) in 8 bits."""
    codebook = learn_codebook(patches(pixels[:: max(1, len(pixels) // LEARNED_FROM)], patch), codes)
    return Palette(
        pixels.shape[-1], pixels.shape[1], patch, tuple(tuple(round(float(x), 1) for x in row) for row in codebook)
    )


def patches(pixels: np.ndarray, patch: int) -> np.ndarray:
    """The patches of images (N, C, h, w), row by row, (N * T, C * patch * patch)."""
    count, channels, height, width = pixels.shape
    separated = pixels.reshape(count, channels, height // patch, patch, width // patch, patch)
    return separated.transpose(0, 2, 4, 1, 3, 5).reshape(-1, channels * patch * patch)
