"""What an agent is shown of a world, and images as a model reads them."""

from typing import Literal

import numpy as np
from jaxtyping import Float32, UInt8

from foveate.errors import UserError

Views = Literal["pixels", "symbols", "grey-depth"]

LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)
"""What red, green and blue count for in a grey image."""

COLOUR_AND_DEPTH = 4
"""Channels of the images of a camera that measures depth: red, green, blue and depth."""


def scale_pixels(pixels: UInt8[np.ndarray, "T h w c"]) -> Float32[np.ndarray, "T c h w"]:
    """Images from -1 to 1."""
    return pixels.transpose(0, 3, 1, 2).astype(np.float32) / 127.5 - 1


def make_grey(images: Float32[np.ndarray, "T 3 h w"]) -> Float32[np.ndarray, "T h w"]:
    """Grey images of coloured ones."""
    return images.transpose(0, 2, 3, 1) @ LUMINANCE


def encode_images(pixels: UInt8[np.ndarray, "T h w c"], views: Views, place: str) -> Float32[np.ndarray, "T C h w"]:
    """Images from -1 to 1, with all channels as they are, or as grey and depth.

    Raises UserError, which names the `place`, for views that the images do not have.
    """
    images = scale_pixels(pixels)
    if views == "pixels":
        return images
    if views == "grey-depth" and pixels.shape[-1] == COLOUR_AND_DEPTH:
        return np.stack([make_grey(images[:, :3]), images[:, 3]], 1)
    raise UserError(f"{place} has images alone: learn from them with --views pixels")
