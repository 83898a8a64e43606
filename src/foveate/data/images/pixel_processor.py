"""Images become sequences of colours, for models that predict each pixel from those before it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import PIL.Image
import torch
from torch import Tensor

from foveate.contracts import Batch, label_batch
from foveate.data.dataset import Dataset
from foveate.data.images.decoded import decode
from foveate.data.images.labelled import ImageFormat, LabelledImage
from foveate.data.images.processor import normalize
from foveate.data.processor import Processor


@dataclass
class PixelProcessor(Processor[LabelledImage]):
    """Turns images into inputs `pixels` (B, C, h, w) and labels (B, h*w), the number of each pixel's colour.

    A colour is one of `levels` evenly spaced levels of each channel, the first channel counting most, as in
    `foveate.models.vision.imagegpt.even_palette`.
    """

    format: ImageFormat
    levels: int
    flip: bool = False
    """Flip half of the images in training."""

    def prepare(self, dataset: Dataset[LabelledImage]) -> Sequence[np.ndarray]:
        return list(decode(dataset, self.format))

    def batch(self, prepared: Sequence[np.ndarray], generator: np.random.Generator | None) -> Batch:
        pixels = np.stack(prepared)
        if generator is not None and self.flip:
            flipped = generator.random(len(pixels)) < 0.5
            pixels[flipped] = pixels[flipped, ..., ::-1]
        return label_batch({"pixels": normalize(pixels)}, torch.from_numpy(self.colours(pixels)), "pixels")

    def colours(self, pixels: np.ndarray) -> np.ndarray:
        """The numbers (N, h*w) of the colours of images (N, C, h, w) in 8 bits."""
        levels = np.ceil(pixels * ((self.levels - 1) / 255) - 0.5).astype(np.int64)  # as the nearest, of two the lower
        weights = self.levels ** np.arange(self.format.channels)[::-1]
        return np.einsum("nchw,c->nhw", levels, weights).reshape(len(pixels), -1)

    def images(self, colours: np.ndarray) -> np.ndarray:
        """The images (N, h, w, C) in 8 bits of numbers of colours (N, h*w)."""
        weights = self.levels ** np.arange(self.format.channels)[::-1]
        levels = colours[..., None] // weights % self.levels
        pixels = (levels * 255 / (self.levels - 1)).round().astype(np.uint8)
        return pixels.reshape(len(colours), self.format.size, self.format.size, self.format.channels)

    def pixels(self, images: Sequence[PIL.Image.Image]) -> Tensor:
        """Images as a model reads them, (B, C, h, w)."""
        return normalize(np.stack([self.format.pixels(image) for image in images]))

    def sizes(self) -> dict[str, int]:
        channels = self.format.channels
        return {
            "classes": 1,
            "channels": channels,
            "image_size": self.format.size,
            "colours": self.levels**channels,
        }
