"""Images that are read.

    Image            scaled so that it fills a square
    AugmentedImage   the same, changed at random in training

B batch    C channels    h, w height and width in pixels
"""

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import PIL.Image
import torch
from torch import Tensor

from foveate.contracts import Picture
from foveate.data.dataset import Dataset
from foveate.data.images.augmentation import Augmentation, mixup
from foveate.data.images.decoded import decode_undamaged
from foveate.data.images.decoding import read_image
from foveate.data.images.labelled import ImageFormat, report_damaged
from foveate.data.images.processor import choose_format, normalize
from foveate.errors import UserError, at_least
from foveate.forms.form import Changes, InputForm, Learned, Naming, Prepared, Row
from foveate.forms.grids import GridFinder, grid_names
from foveate.forms.image_files import image_files, without_damaged
from foveate.forms.inputs import open_image, require_file
from foveate.viewer.figures import plot_image_attention, plot_word_strip
from foveate.viewer.protocol import Input, InputKind

PATCH = 16
"""Pixels down and across of a place, in which the cost of an image is counted."""


@dataclass
class Image(InputForm):
    """An image that fills a square: inputs `pixels` (B, C, h, w)."""

    kind: ClassVar[InputKind] = "image"
    name: ClassVar[str] = "image"
    worth_optimizing: ClassVar[float] = 16

    size: int | None = None
    """Height and width that images are scaled to. By default their own, if all are square, equal and at most 256, else
    64."""
    format: Learned[ImageFormat | None] = None
    """The size and the channels of the model's input."""

    def check(self) -> None:
        if self.size is not None:
            at_least(1, "size", self.size)

    def check_learned(self) -> None:
        if self.format is None:
            raise UserError("the size of images is missing")

    def learn(self, train: Dataset[Any], architecture: Any) -> "Image":
        found = type(self)(**vars(self))
        composed = getattr(train[0], "identity", None) or getattr(train[0], "composed", False)
        found.format = choose_format([train[0]] if composed else train, self.size)  # composed images are alike
        return found

    @property
    def square(self) -> ImageFormat:
        """The format, once it is learned."""
        assert self.format is not None, "the form has not learned from examples"
        return self.format

    def sizes(self) -> dict[str, int]:
        return {"channels": self.square.channels, "image_size": self.square.size}

    def expand(self, given: Sequence[str]) -> list[str]:
        return image_files(given)

    def open(self, given: str) -> PIL.Image.Image:
        return read_image(Path(given))

    def receive(self, given: Input, name: str) -> PIL.Image.Image:
        return open_image(require_file(given, name, "image"))

    def group(self, example: Any) -> Hashable:
        return image_digest(example)

    def prepare(self, value: PIL.Image.Image) -> np.ndarray:
        """8-bit pixels (C, h, w)."""
        return self.square.pixels(value)

    def prepare_all(self, dataset: Dataset[Any]) -> Prepared:
        """Decoded once, in memory or in a file of the cache; damaged images are left out."""
        pixels, kept, damaged = decode_undamaged(dataset, self.square)
        return Prepared(pixels, kept, report_damaged(damaged))

    def places(self, prepared: np.ndarray) -> int:
        return count_places(prepared.shape[1:])

    def tensors(
        self, prepared: Sequence[np.ndarray], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        return {"pixels": normalize(np.stack(list(prepared)))}, Changes()

    def usable(self, dataset: Dataset[Any]) -> Dataset[Any]:
        return without_damaged(dataset)

    def prefix(self, given: str) -> tuple[str, ...]:
        return (given,)

    def before(self, places: int, grid: GridFinder) -> int:
        return grid(places)[2]

    def picture(self, value: PIL.Image.Image) -> np.ndarray:
        """The image as the model sees it, (h, w, C)."""
        return np.ascontiguousarray(self.square.pixels(value).transpose(1, 2, 0))

    def axis(self, value: PIL.Image.Image, prepared: np.ndarray, grid: GridFinder) -> Naming:
        return grid_names(self.picture(value), grid)

    def draw(self, value: PIL.Image.Image, rows: Sequence[Row], title: str, grid: GridFinder) -> Picture | None:
        """The image beside where it was looked at; for several rows a strip with the image once for each."""
        return draw_over(self.picture(value), rows, title, grid)


@dataclass
class AugmentedImage(Augmentation, Image):
    """An image that is moved, flipped and mixed with others in training."""

    def check(self) -> None:
        Image.check(self)
        Augmentation.check(self)

    def tensors(
        self, prepared: Sequence[np.ndarray], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        pixels = np.stack(list(prepared))
        if generator is not None:
            pixels = self.changed(pixels, generator)
        if generator is None or not self.mixup:
            return {"pixels": normalize(pixels)}, Changes()
        mixed, partners, share = mixup(normalize(pixels), self.mixup, generator)
        return {"pixels": mixed}, Changes(partners=partners, share=share)


def count_places(size: Sequence[int]) -> int:
    """The patches of 16 x 16 pixels that an image of this height and width has."""
    height, width = size
    return -(-height // PATCH) * -(-width // PATCH)


def image_digest(example: Any) -> bytes:
    """A few bytes that are the same for two files with the same bytes, and for images with the same pixels."""
    if (file := getattr(example, "file", None)) is not None:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "blake2b").digest()[:8]
    image = example.read()
    return hashlib.blake2b(f"{image.mode}{image.size}".encode() + image.tobytes(), digest_size=8).digest()


def draw_over(picture: np.ndarray, rows: Sequence[Row], title: str, grid: GridFinder) -> Picture | None:
    """A picture (h, w, C) with the weights of rows over it, which are those of a grid, perhaps after a class token."""
    if not rows:
        return None
    maps = []
    for row in rows:
        down, across, before = grid(len(row.weights))
        maps.append(row.weights[before:].reshape(down, across))
    if len(rows) == 1:
        return plot_image_attention(picture, np.asarray(maps[0]), title)
    return plot_word_strip(picture, [row.name for row in rows], torch.stack(list(map(torch.as_tensor, maps))), title)
