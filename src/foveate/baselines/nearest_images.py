"""A baseline of tasks that read images: the answer of the training image whose pixels are nearest."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32

from foveate.data.images.labelled import ImageFormat
from foveate.data.images.word_images import WordImage, grey

TOGETHER = 64
"""Images whose nearest one is searched at once."""


def nearest_images(asked: Sequence[Any], known: Sequence[Any], channels: int) -> list[int]:
    """The place of the known example whose image is nearest to that of each example, both scaled to 16 x 16."""
    others = thumbnails(known, channels)
    squares, found = (others**2).sum(1), []
    for begin in range(0, len(asked), TOGETHER):
        some = thumbnails(asked[begin : begin + TOGETHER], channels)
        found += (squares - 2 * some @ others.T).argmin(1).tolist()
    return found


def thumbnails(examples: Sequence[Any], channels: int) -> Float32[np.ndarray, "N D"]:
    """The pixels of the image of each example, scaled to 16 x 16."""
    small = ImageFormat(16, channels)
    return np.stack([small.pixels(one.read()).reshape(-1) for one in examples]).astype(np.float32)


def nearest_writing(asked: Sequence[WordImage], known: Sequence[WordImage]) -> list[int]:
    """The same for images of words, dark on bright or bright on dark, by the cosine."""
    return (_writing(asked) @ _writing(known).T).argmax(1).tolist()


def _writing(examples: Sequence[WordImage]) -> Float32[np.ndarray, "N D"]:
    """Each image as a unit vector: scaled to 16 x 48, without its mean, letters positive where they are fewer."""
    vectors = np.empty((len(examples), 16 * 48), np.float32)
    for row, example in enumerate(examples):
        pixels = np.asarray(grey(example.read()).resize((48, 16)), np.float32)
        pixels = pixels - pixels.mean()
        vectors[row] = (pixels * np.sign((pixels**3).mean() or 1)).ravel()
    return vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-6)
