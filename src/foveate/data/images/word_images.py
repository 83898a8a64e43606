"""Images of words with what is written in them, and how they become tensors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import PIL.Image
import torch
from torch import Tensor

from foveate.contracts import Batch, label_batch
from foveate.data.dataset import Dataset
from foveate.data.images.decoding import flat, read_size_and_mode, turn_upright
from foveate.data.images.labelled import labelled_images
from foveate.data.processor import Processor
from foveate.data.text.files import Paths, as_paths
from foveate.data.tokens.character_tokens import SPECIAL, decode, encode, teacher_forcing
from foveate.errors import UserError, at_least
from foveate.special_tokens import LEARNED, SpecialTokens

TABLE = "labels.tsv"
"""The table in a folder of word images."""

TALLEST = 8
"""Height of the tallest image that may hold a line of text, as a multiple of its width."""


@runtime_checkable
class WordImage(Protocol):
    """An image and what is written in it."""

    @property
    def place(self) -> str: ...

    @property
    def label(self) -> str:
        """The text in the image."""

    def read(self) -> PIL.Image.Image: ...

    def content(self) -> bytes: ...


def word_images(paths: Paths) -> Dataset[WordImage]:
    """A table with `image<TAB>text` on each line, or a folder with such a table, `labels.tsv`.

    Paths of images are relative to the table's folder. Images that cannot be used, such as those that are too tall for
    a line of text, are left out, and the dataset's notes say so. Raises UserError for anything else, for missing
    images, and where no image is left.
    """
    paths = as_paths(paths)
    if len(paths) != 1:
        raise UserError(f"images of words are one table, image<TAB>text on each line; {len(paths)} files were given")
    table = paths[0] / TABLE if paths[0].is_dir() else paths[0]
    if not table.is_file():
        raise UserError(f"there is no table {table} with image<TAB>text on each line")
    found, problems = [], []
    for one in labelled_images([table]):
        assert one.file is not None
        try:
            check_line_of_text(read_size_and_mode(one.file)[0], str(one.file))
        except UserError as error:
            problems.append(str(error))
        else:
            found.append(one)
    if not found:
        raise UserError(problems[0])
    notes = [f"left out {len(problems):,}, the first because {problems[0]}"] if problems else []
    return Dataset(str(table), found, "images", notes)


def check_line_of_text(size: tuple[int, int], name: str) -> None:
    """Raise UserError for an image of a width and height that cannot hold a line of text."""
    width, height = size
    if height > TALLEST * width:
        raise UserError(f"{name} is {width} x {height} pixels: too tall for a line of text")


@dataclass
class WordImageProcessor(Processor[WordImage]):
    """Turns images of words into inputs `pixels` (B, 1, h, w), `widths` (B) and `target` (B, T), and labels (B, T).

    An image is made grey and scaled to the height, its proportions kept; one that is then wider than the width is
    squeezed. Each image gets a mean of 0 and a deviation of 1; columns of padding are 0. In training the ground may be
    darker than the letters or lighter, and the image is scaled and shifted a little, all at random.
    """

    special: ClassVar[SpecialTokens] = LEARNED

    height: int
    width: int
    characters: str
    """The characters that the model can write; token ids are their places, after the special ones."""
    augment: bool = True

    def check(self) -> None:
        at_least(8, "height", self.height)  # what SAR's convolutions leave a place of
        at_least(4, "width", self.width)

    def batch(self, prepared: Sequence[WordImage], generator: np.random.Generator | None) -> Batch:
        generator = generator if self.augment else None
        inputs = self.inputs([example.read() for example in prepared], generator)
        target, labels = teacher_forcing([self.encode(example.label) for example in prepared])
        return label_batch({**inputs, "target": target}, labels, "images")

    def inputs(
        self, images: Sequence[PIL.Image.Image], generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """The `pixels` and `widths` of images, changed at random where a generator is given."""
        canvas = np.zeros((len(images), 1, self.height, self.width), np.float32)
        widths = np.empty(len(images), np.int64)
        for row, image in enumerate(images):
            pixels = self._scale(image, generator)
            widths[row] = pixels.shape[1]
            canvas[row, 0, :, : widths[row]] = pixels
        return {"pixels": torch.from_numpy(canvas), "widths": torch.from_numpy(widths)}

    def _scale(self, image: PIL.Image.Image, generator: np.random.Generator | None) -> np.ndarray:
        grey = self.grey(image)
        sign, stretch = 1.0, 1.0
        if generator is not None:
            sign = 1.0 if generator.random() < 0.5 else -1.0
            stretch = float(np.exp(generator.normal(0, 0.15)))
        width = round(stretch * grey.width * self.height / grey.height)
        grey = grey.resize((min(max(width, 4), self.width), self.height), PIL.Image.Resampling.BILINEAR)
        pixels = np.asarray(grey, np.float32)
        return sign * (pixels - pixels.mean()) / (pixels.std() + 1)

    @staticmethod
    def grey(image: PIL.Image.Image) -> PIL.Image.Image:
        """The image upright and grey, on white where it is transparent."""
        return flat(turn_upright(image)).convert("L")

    def encode(self, text: str) -> list[int]:
        """Token ids of a text; a character that is not known is the unknown token."""
        return encode(text, self.characters)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of token ids; what is not known is '⁇'."""
        return decode(tokens, self.characters)

    def sizes(self) -> dict[str, int]:
        return {"vocabulary": SPECIAL + len(self.characters), "channels": 1}
