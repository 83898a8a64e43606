"""Images with boxes become tensors: scaled, padded, augmented; and boxes with noise, to learn to correct them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import PIL.Image
import torch
from torch import Tensor

from foveate.contracts import IGNORE, Batch
from foveate.data.images.boxes import BoxedImage
from foveate.data.images.decoding import flat
from foveate.data.images.processor import normalize
from foveate.data.processor import Processor

SMALLEST = 0.7
"""In training an image is scaled to a random size between this share of the usual one and all of it."""

MOVED = 0.4
"""Noisy boxes are moved by up to this share of half their size, and their size changes by up to this share."""

RELABELLED = 0.2
"""Share of noisy boxes with a random label."""

GREY = 127
"""What pads images at the right and the bottom."""


@dataclass
class BoxProcessor(Processor[BoxedImage]):
    """Turns images with boxes into inputs `pixels` (B, 3, s, s) and `sizes` (B, 2), and targets `boxes` (B, K, 4), as
    shares of the image, and `labels` (B, K), with IGNORE for padding.

    With `denoising` groups the inputs of training also have `noisy_boxes` (B, G, K, 4) and `noisy_labels` (B, G, K).
    """

    size: int
    """Images are scaled so that their longer side has so many pixels."""
    labels: dict[str, int]
    """How often each label occurs in training; the classes of the model in their order."""
    usual_box: tuple[float, ...]
    """The mean box of the most frequent label's objects, to compare with: centre and size, as shares of the image."""
    augment: bool = True
    denoising: int | None = None

    def batch(self, prepared: Sequence[BoxedImage], generator: np.random.Generator | None) -> Batch:
        numbers = {label: number for number, label in enumerate(self.labels)}
        count = max(1, *(len(example.labels) for example in prepared))
        boxes = np.full((len(prepared), count, 4), 0.5, np.float32)
        labels = np.full((len(prepared), count), IGNORE, np.int64)
        images, scales, flips = [], [], []
        for row, example in enumerate(prepared):
            image = example.read()
            known = [place for place, label in enumerate(example.labels) if label in numbers]
            if known:
                boxes[row, : len(known)] = shares(np.array(example.boxes, np.float32)[known], image.size)
                labels[row, : len(known)] = [numbers[example.labels[place]] for place in known]
            images.append(image)
            scales.append(1.0 if generator is None or not self.augment else generator.uniform(SMALLEST, 1))
            flips.append(generator is not None and self.augment and generator.random() < 0.5)
            if flips[-1]:
                boxes[row, :, 0] = 1 - boxes[row, :, 0]
        inputs = self.inputs(images, scales, flips)
        if generator is not None and self.denoising:
            inputs |= self._noisy(boxes, labels, generator)
        weight = torch.from_numpy((labels != IGNORE).sum(1))
        targets = {"boxes": torch.from_numpy(boxes), "labels": torch.from_numpy(labels)}
        return Batch(inputs, targets, weight, "images")

    def inputs(
        self, images: Sequence[PIL.Image.Image], scales: Sequence[float] = (), flips: Sequence[bool] = ()
    ) -> dict[str, Tensor]:
        """Images as a model reads them: `pixels`, and `sizes`, the height and the width of each within them."""
        pixels = np.full((len(images), 3, self.size, self.size), GREY, np.uint8)
        sizes = torch.empty(len(images), 2, dtype=torch.long)
        for row, image in enumerate(images):
            side = self.size * (scales[row] if scales else 1.0)
            width, height = (max(1, round(side * part / max(image.size))) for part in image.size)
            scaled = flat(image).convert("RGB")
            if scaled.size != (width, height):
                scaled = scaled.resize((width, height), PIL.Image.Resampling.BILINEAR)
            found = np.asarray(scaled).transpose(2, 0, 1)
            pixels[row, :, :height, :width] = found[..., ::-1] if flips and flips[row] else found
            sizes[row] = torch.tensor([height, width])
        return {"pixels": normalize(pixels), "sizes": sizes}

    def _noisy(self, boxes: np.ndarray, labels: np.ndarray, generator: np.random.Generator) -> dict[str, Tensor]:
        """Variants of the boxes in groups, as in Li et al. 2022 (https://arxiv.org/abs/2203.01305, section 4.1)."""
        noise = generator.uniform(-MOVED, MOVED, (len(boxes), self.denoising or 0, *boxes.shape[1:]))
        centre, size = boxes[:, None, :, :2], boxes[:, None, :, 2:]
        noisy = np.concatenate([centre + noise[..., :2] * size / 2, size * (1 + noise[..., 2:])], -1)
        others = generator.integers(0, len(self.labels), noise.shape[:-1])
        given = np.broadcast_to(labels[:, None], others.shape)
        drawn = (generator.random(others.shape) < RELABELLED) & (given != IGNORE)
        return {
            "noisy_boxes": torch.from_numpy(noisy.clip(1e-3, 1 - 1e-3).astype(np.float32)),
            "noisy_labels": torch.from_numpy(np.where(drawn, others, given)),
        }

    def sizes(self) -> dict[str, int]:
        return {"classes": len(self.labels), "image_size": self.size}


def shares(boxes: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Corners in pixels (K, 4) as centre and size in shares of an image of this width and height."""
    corners = boxes / np.array([*size, *size], np.float32)
    return np.concatenate([(corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]], 1)
