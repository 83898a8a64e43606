"""Images that are read.

    SquareImage      scaled so that it fills a square
    AugmentedImage   the same, changed at random in training
    FittedImage      scaled so that it fits into a square, which is padded: whatever is in it stays in it

B batch    C channels    h, w height and width in pixels
"""

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import PIL.Image
import torch
from torch import Tensor

from foveate.contracts import Picture
from foveate.data.dataset import Dataset, Prepared
from foveate.data.images.augmentation import Augmentation, RandomPart
from foveate.data.images.decoded import decode_undamaged
from foveate.data.images.decoding import DamagedImage, flat, in_8_bits, read_image, read_shrunk, turn_upright
from foveate.data.images.kept import Read, SizedImage, Unread, undamaged_images
from foveate.data.images.labelled import LARGEST_SIDE, ImageFormat, report_damaged
from foveate.data.images.pixels import choose_format
from foveate.data.table import IMAGE, Column
from foveate.errors import UserError, at_least
from foveate.forms.form import Changes, Fit, InputForm, Learned, MapRow, Naming
from foveate.forms.grids import GridFinder, grid_names
from foveate.forms.image_files import image_files, without_damaged
from foveate.forms.inputs import open_image, require_file
from foveate.forms.ranged_pixels import RangedPixels
from foveate.forms.standard_pixels import StandardPixels
from foveate.viewer.figures import plot_image_attention, plot_word_strip
from foveate.viewer.marks import plot_marks
from foveate.viewer.protocol import Input, InputKind

PATCH = 16
"""Pixels down and across of a place, in which the cost of an image is counted."""


SHOWN = 256
"""Height and width of the images in a strip, in pixels."""

SMALLEST = 0.7
"""In training a fitted image is scaled to a random size between this share of the usual one and all of it."""

GREY = 127
"""What pads fitted images at the right and the bottom."""


@dataclass
class ImageForm(RangedPixels, InputForm):
    """What images have in common, however they become tensors."""

    kind: ClassVar[InputKind] = "image"
    name: ClassVar[str] = "image"
    columns: ClassVar[tuple[Column, ...]] = (IMAGE,)
    worth_optimizing: ClassVar[float] = 16

    def expand(self, given: Sequence[str]) -> list[str]:
        return image_files(given)

    def open(self, given: str) -> PIL.Image.Image:
        try:
            return in_8_bits(read_image(Path(given)), self.pixel_range)
        except DamagedImage as error:
            raise DamagedImage(str(error) if given in str(error) else f"{given} has {error}") from None

    def receive(self, given: Input, name: str) -> PIL.Image.Image:
        return open_image(require_file(given, name, "image"), self.pixel_range)

    def group(self, example: Any) -> Hashable:
        return image_digest(example)

    def usable(self, dataset: Dataset[Any]) -> Dataset[Any]:
        return without_damaged(dataset)

    def prefix(self, given: str) -> tuple[str, ...]:
        return (given,)

    def before(self, places: int, grid: GridFinder) -> int:
        return grid(places)[2]

    def picture(self, value: PIL.Image.Image) -> np.ndarray:
        """The image as the model sees it, (h, w, C)."""
        raise NotImplementedError

    def enlarged(self, value: PIL.Image.Image) -> np.ndarray:
        """The image for a strip, (h, w, C)."""
        return self.picture(value)

    def axis(self, value: PIL.Image.Image, prepared: Any, grid: GridFinder) -> Naming:
        return grid_names(self.picture(value), grid)

    def draw(self, value: PIL.Image.Image, rows: Sequence[MapRow], title: str, grid: GridFinder) -> Picture | None:
        """The image beside where it was looked at; for several rows a strip with the image once for each."""
        return draw_over(self.picture(value), rows, title, grid)


@dataclass
class SquareImage(StandardPixels, ImageForm):
    """An image that fills a square: inputs `pixels` (B, C, h, w)."""

    size: int | None = None
    """Height and width that images are scaled to. By default their own, if all are square, equal and at most 256; else
    the size of the run that the training begins from, or 64."""
    format: Learned[ImageFormat | None] = None
    """The size and the channels of the model's input. Before it is learned, those of the run that the training begins
    from."""

    def check(self) -> None:
        self.check_standard()
        if self.size is not None:
            at_least(1, "size", self.size)

    def check_learned(self) -> None:
        if self.format is None:
            raise UserError("the size of images is missing")

    def learn(self, train: Dataset[Any], architecture: Any) -> "SquareImage":
        found = type(self)(**vars(self))
        composed = getattr(train[0], "identity", None) or getattr(train[0], "composed", False)
        images = [train[0]] if composed else train  # composed images are alike
        found.format = choose_format(images, self.size, LARGEST_SIDE if self.format is None else self.format.size)
        if self.format is not None:
            found.format = replace(found.format, channels=self.format.channels)
        elif self.pixel_mean is not None:
            found.format = replace(found.format, channels=len(self.pixel_mean))
        return found

    def extend(self, trained: Any, train: Dataset[Any]) -> "SquareImage":
        check_same_size(self.size or trained.square.size, trained.square.size)
        return super().extend(trained, train)

    def follow(self, trained: Any) -> "SquareImage":
        """With the channels of the trained one, and its size, unless another one is asked for."""
        found = type(self)(**vars(self))
        found.format = replace(trained.square, size=self.size or trained.square.size)
        return found

    @property
    def square(self) -> ImageFormat:
        """The format, once it is learned."""
        assert self.format is not None, "the form has not learned from examples"
        return self.format

    def sizes(self) -> dict[str, int]:
        return {"channels": self.square.channels, "image_size": self.square.size}

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
        return {"pixels": self.standardise(np.stack(list(prepared)))}, Changes()

    def picture(self, value: PIL.Image.Image) -> np.ndarray:
        return np.ascontiguousarray(self.square.pixels(value).transpose(1, 2, 0))

    def draw(self, value: PIL.Image.Image, rows: Sequence[MapRow], title: str, grid: GridFinder) -> Picture | None:
        if is_whole(rows, title):
            return super().draw(value, rows, title, grid)
        return draw_over(self.enlarged(value), rows, title, grid)

    def enlarged(self, value: PIL.Image.Image) -> np.ndarray:
        shown = ImageFormat(SHOWN, self.square.channels).pixels(value)
        return np.ascontiguousarray(shown.transpose(1, 2, 0))


@dataclass
class AugmentedImage(Augmentation, SquareImage):
    """An image that is moved, flipped and mixed with others in training."""

    def check(self) -> None:
        SquareImage.check(self)
        Augmentation.check(self)

    def prepare_all(self, dataset: Dataset[Any]) -> Prepared:
        """As squares, unless parts are cut out of the whole images."""
        if self.crop is None:
            return super().prepare_all(dataset)
        largest = round(self.square.size**2 / self.crop)
        return undamaged_images(dataset, partial(self._to_keep, largest), self.square.channels, largest)

    @property
    def copies(self) -> int:
        return self.repeats

    def places(self, prepared: Any) -> int:
        return count_places((self.square.size, self.square.size))

    def tensors(
        self, prepared: Sequence[Any], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        pixels = np.stack([one if isinstance(one, np.ndarray) else self._part(one, generator) for one in prepared])
        if generator is None:
            return {"pixels": self.standardise(pixels)}, Changes()
        mixed, partners, share = self.mixed(self.standardise(self.changed(pixels, generator)), generator)
        return {"pixels": mixed}, Changes(partners=partners, share=share)

    def _part(self, one: Any, generator: np.random.Generator | None) -> np.ndarray:
        """A random part of an image that is read; without a generator the middle of it."""
        if generator is None:
            return self.square.pixels(one.read() if isinstance(one, Unread) else one().image)
        part, side = RandomPart.draw(self.crop or 1.0, generator), self.square.size
        if isinstance(one, Unread):
            image = self.square.whole(read_shrunk(one.read, partial(part.enlarged, side)))
        else:
            image = one().image
        return self.square.part(image, part.box(*image.size))

    def _to_keep(self, largest: int, read: Read) -> SizedImage:
        """An image of as many pixels as its smallest part needs for the square."""
        image = self.square.whole(read_shrunk(read, lambda size: (largest / (size[0] * size[1])) ** 0.5))
        share = min(1.0, (largest / (image.width * image.height)) ** 0.5)
        smaller = max(1, int(image.width * share)), max(1, int(image.height * share))
        kept = image if image.width * image.height <= largest else image.resize(smaller, PIL.Image.Resampling.BICUBIC)
        return SizedImage(kept, image.size)


class Fitted(NamedTuple):
    """An image that was scaled so that it fits into a square."""

    pixels: np.ndarray
    """(3, h, w) in 8 bits, without padding."""
    fit: Fit


@dataclass
class FittedImage(StandardPixels, ImageForm):
    """An image that fits into the top left corner of a square: inputs `pixels` (B, 3, s, s), and `sizes` (B, 2), the
    height and the width of each image in it."""

    size: int = 128
    """Length of the longer side that images are scaled to."""
    augment: bool = True
    """Flip images and make them smaller in training."""

    def check(self) -> None:
        self.check_standard()
        at_least(1, "size", self.size)

    def extend(self, trained: Any, train: Dataset[Any]) -> "FittedImage":
        check_same_size(self.size, trained.size)
        return super().extend(trained, train)

    def sizes(self) -> dict[str, int]:
        return {"image_size": self.size}

    def open(self, given: str) -> PIL.Image.Image:
        return turn_upright(super().open(given))

    def prepare(self, value: PIL.Image.Image) -> Fitted:
        return self.fitted(value)

    def prepare_all(self, dataset: Dataset[Any]) -> Prepared:
        """They are scaled anew whenever they are read, and decoded once where all of them fit into memory."""
        return undamaged_images(dataset, self._to_keep, 3, self.size**2)

    def places(self, prepared: Fitted) -> int:
        return count_places((self.size, self.size))

    def tensors(
        self, prepared: Sequence[Any], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        images = []
        for one in prepared:
            share, flip = 1.0, False
            if generator is not None and self.augment:
                share, flip = generator.uniform(SMALLEST, 1), bool(generator.random() < 0.5)
            images.append(one if isinstance(one, Fitted) else self._again(one, share, flip))
        pixels = np.full((len(images), 3, self.size, self.size), GREY, np.uint8)
        for square, image in zip(pixels, images, strict=True):
            square[:, : image.pixels.shape[1], : image.pixels.shape[2]] = image.pixels
        sizes = torch.tensor([image.fit.scaled[::-1] for image in images])
        return {"pixels": self.standardise(pixels), "sizes": sizes}, Changes(fits=[image.fit for image in images])

    def fitted(self, image: PIL.Image.Image) -> Fitted:
        """An image whose longer side is that of the square."""
        return self._fitted(flat(image).convert("RGB"), image.size)

    def _to_keep(self, read: Read) -> SizedImage:
        """An image in the size in which it is used at most."""
        image = flat(read()).convert("RGB")
        return SizedImage(scaled(image, image.size, min(self.size, max(image.size))), image.size)

    def _again(self, one: Any, share: float, flip: bool) -> Fitted:
        """An image that is read, and takes this share of the square, perhaps flipped."""
        if not isinstance(one, Unread):
            image, given = one()
            return self._fitted(image, given, share, flip)
        image = flat(one.read()).convert("RGB")
        return self._fitted(image, image.size, share, flip)

    def _fitted(self, image: PIL.Image.Image, given: tuple[int, int], share: float = 1.0, flip: bool = False) -> Fitted:
        image = scaled(image, given, self.size * share)
        pixels = np.asarray(image).transpose(2, 0, 1)
        return Fitted(pixels[..., ::-1] if flip else pixels, Fit(given, image.size, flip))

    def picture(self, value: PIL.Image.Image) -> np.ndarray:
        picture = np.full((self.size, self.size, 3), GREY, np.uint8)
        pixels = self.fitted(value).pixels
        picture[: pixels.shape[1], : pixels.shape[2]] = pixels.transpose(1, 2, 0)
        return picture

    def draw(self, value: PIL.Image.Image, rows: Sequence[MapRow], title: str, grid: GridFinder) -> Picture | None:
        """What was found over the whole image, and for each part of it where it was looked at."""
        if any(row.mark is not None for row in rows):
            return draw_over(np.asarray(flat(value).convert("RGB")), rows, title, grid, max(value.size))
        return super().draw(value, rows, title, grid)


def scaled(image: PIL.Image.Image, given: tuple[int, int], side: float) -> PIL.Image.Image:
    """An image whose longer side is as long as this, and the other one as in the image that has the given size."""
    width, height = (max(1, round(side * part / max(given))) for part in given)
    return image if image.size == (width, height) else image.resize((width, height), PIL.Image.Resampling.BILINEAR)


def check_same_size(size: int, trained: int) -> None:
    """Raise UserError where images are to have another size than those of the run that a training goes on from."""
    if size != trained:
        raise UserError(f"size is {size}, but the images of the run to begin from have {trained} pixels: leave it out")


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


def is_whole(rows: Sequence[MapRow], title: str) -> bool:
    """Whether the only row is the whole answer, and not a part of it, such as its only word."""
    return len(rows) == 1 and rows[0].name == title


def map_weights(rows: Sequence[MapRow], grid: GridFinder) -> list[Any]:
    """The weights of each row as a map (i, j), without those of tokens before the places of the image."""
    maps = []
    for row in rows:
        down, across, before = grid(len(row.weights))
        maps.append(row.weights[before:].reshape(down, across))
    return maps


def draw_over(
    picture: np.ndarray, rows: Sequence[MapRow], title: str, grid: GridFinder, side: int | None = None
) -> Picture | None:
    """A picture (h, w, C) with the weights of rows over it, which are those of a grid, perhaps after a class token.

    The grid covers the picture, or a square at its top left with this side. Marks of the rows are drawn too.
    """
    if not rows:
        return None
    maps = map_weights(rows, grid)
    if marks := [row.mark for row in rows if row.mark is not None]:
        down, across = (side, side) if side is not None else picture.shape[:2]
        return plot_marks(picture, marks, [np.asarray(one) for one in maps], (0, across, down, 0), title)
    if is_whole(rows, title):
        return plot_image_attention(picture, np.asarray(maps[0]), title)
    return plot_word_strip(picture, [row.name for row in rows], torch.stack(list(map(torch.as_tensor, maps))), title)
