"""Images become tensors: decoded once, kept as 8-bit pixels, augmented, normalised."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import PIL.Image
import torch
from jaxtyping import Float
from torch import Tensor

from foveate.contracts import Batch, label_batch
from foveate.data.dataset import Dataset
from foveate.data.images.augmentation import Augmentation, mixup
from foveate.data.images.decoded import decode_undamaged
from foveate.data.images.decoding import DamagedImage, read_size_and_mode
from foveate.data.images.labelled import LARGEST_SIDE, ImageFormat, LabelledImage, ReadableImage, report_damaged
from foveate.data.processor import Processor

GREY = {"1", "L", "LA", "I", "I;16", "I;16B", "I;16L"}
"""Pillow's modes of images without colour."""


def choose_format(images: Iterable[ReadableImage], size: int | None) -> ImageFormat:
    """Grey where all images are; their own size where all are square and of one size, at most 256. Damaged ones do not
    count."""
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
    fitting = own[0] if own[0] == own[1] <= 256 else LARGEST_SIDE
    return ImageFormat(size or fitting, 1 if modes <= GREY else 3)


def _size_and_mode(example: ReadableImage) -> tuple[tuple[int, int], str]:
    if (file := getattr(example, "file", None)) is not None:
        return read_size_and_mode(file)
    image = example.read()
    return image.size, image.mode


def normalize(pixels: np.ndarray) -> Float[Tensor, "B C h w"]:
    """8-bit pixels as numbers from about -2 to 2, channels last in memory, as convolutions read them fastest."""
    return (torch.from_numpy(pixels).float() / 63.75 - 2).contiguous(memory_format=torch.channels_last)


@dataclass
class PreparedImages(Sequence[tuple[np.ndarray, int]]):
    """Decoded images (C, h, w) in 8 bits, with the number of each one's label."""

    pixels: np.ndarray
    labels: np.ndarray
    examples: list[int]
    """The number of each one's example: damaged ones are left out."""
    report: str = ""
    """Names those that were left out."""

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, number: Any) -> Any:
        return self.pixels[number], int(self.labels[number])


@dataclass
class ImageProcessor(Augmentation, Processor[LabelledImage]):
    """Turns labelled images into inputs `pixels` (B, C, h, w), changed in training, and labels (B, 1)."""

    format: ImageFormat
    labels: dict[str, int]
    """How often each label occurs in training; the classes of the model in their order."""

    def prepare(self, dataset: Dataset[LabelledImage]) -> PreparedImages:
        numbers = {label: number for number, label in enumerate(self.labels)}
        pixels, kept, damaged = decode_undamaged(dataset, self.format)
        labels = np.array([numbers[dataset[number].label] for number in kept], np.int64)
        return PreparedImages(pixels, labels, kept, report_damaged(damaged))

    def batch(self, prepared: Sequence[tuple[np.ndarray, int]], generator: np.random.Generator | None) -> Batch:
        pixels = np.stack([image for image, _ in prepared])
        labels = torch.tensor([[label] for _, label in prepared])
        if generator is not None:
            pixels = self.changed(pixels, generator)
        if generator is None or not self.mixup:
            return label_batch({"pixels": normalize(pixels)}, labels, "images")
        mixed, partners, share = mixup(normalize(pixels), self.mixup, generator)
        batch = label_batch({"pixels": mixed}, labels, "images")
        batch.targets |= {"mixed_labels": labels[partners], "mixed_share": torch.full((len(labels),), share)}
        return batch

    def pixels(self, images: Sequence[PIL.Image.Image]) -> Tensor:
        """Images as a model reads them, (B, C, h, w)."""
        return normalize(np.stack([self.format.pixels(image) for image in images]))

    def sizes(self) -> dict[str, int]:
        return {"classes": len(self.labels), "channels": self.format.channels, "image_size": self.format.size}
