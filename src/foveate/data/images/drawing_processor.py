"""Captioned images become tokens to draw with: each patch is one of a few hundred colours or patterns of a codebook.

K  codes; the number K itself stands for a hidden place    T  places of an image, row by row    S  tokens of a caption
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import PIL.Image
import torch
from torch import Tensor

from foveate.config import from_dict
from foveate.contracts import IGNORE, Batch, label_batch
from foveate.data.codebook import check_codes, learn_codebook, quantize
from foveate.data.dataset import Dataset
from foveate.data.images.caption_processor import TOKENIZER, Prepared, PreparedCaptions
from foveate.data.images.captions import CaptionedImage
from foveate.data.images.decoded import decode
from foveate.data.images.labelled import ImageFormat
from foveate.data.processor import PROCESSOR, Processor
from foveate.data.ragged import padded
from foveate.data.tokens.tokenizers import SubwordTokenizer, load_tokenizer
from foveate.errors import UserError
from foveate.files import read_json

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
    parted = pixels.reshape(count, channels, height // patch, patch, width // patch, patch)
    return parted.transpose(0, 2, 4, 1, 3, 5).reshape(-1, channels * patch * patch)


@dataclass
class DrawingProcessor(Processor[CaptionedImage]):
    """Turns captioned images into inputs `image` (B, T), `tokens` (B, S) and `lengths` (B,), and labels (B, T).

    In training some places of each image are hidden, cos(u pi / 2) of them for a u that is drawn evenly (Chang et al.
    2022, https://arxiv.org/abs/2202.04200). They alone have labels. A caption begins with a start token; some are left
    out, so that the model learns to draw without one too.
    """

    palette: Palette
    tokenizer: SubwordTokenizer
    caption_dropout: float = 0.1
    """Share of the captions that are left out in training."""

    def prepare(self, dataset: Dataset[CaptionedImage]) -> PreparedCaptions:
        images = [number for number, example in enumerate(dataset) for _ in example.captions]
        captions = self.tokenizer.encode([caption for example in dataset for caption in example.captions])
        return PreparedCaptions(self.palette.encode(decode(dataset, self.palette.format)), images, captions)

    def batch(self, prepared: Sequence[Prepared], generator: np.random.Generator | None) -> Batch:
        images = np.stack([image for image, _ in prepared])
        training = generator is not None
        generator = generator or np.random.default_rng(1)
        hidden = self._hide(images.shape, generator)
        captions = [tokens for _, tokens in prepared]
        if training:
            left_out = generator.random(len(captions)) < self.caption_dropout
            captions = [[] if out else tokens for out, tokens in zip(left_out, captions, strict=True)]
        inputs = {"image": torch.from_numpy(np.where(hidden, len(self.palette.codes), images)), **self.read(captions)}
        return label_batch(inputs, torch.from_numpy(np.where(hidden, images, IGNORE)), "images")

    def read(self, captions: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """The inputs for the tokens of captions; an empty one is none."""
        special = self.tokenizer.special
        tokens, lengths = padded([np.array([special.start, *caption]) for caption in captions], special.pad)
        return {"tokens": tokens, "lengths": lengths}

    def hidden(self, count: int) -> Tensor:
        """Images (B, T) of which nothing is known."""
        return torch.full((count, self.palette.side**2), len(self.palette.codes))

    def tokens(self, images: Sequence[PIL.Image.Image]) -> Tensor:
        """The tokens of images, (B, T)."""
        return torch.from_numpy(self.palette.encode(np.stack([self.palette.format.pixels(one) for one in images])))

    def _hide(self, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
        """Which places of each image are hidden: at least one. The shares are spread evenly over the images."""
        rows, places = shape
        even = (np.arange(rows) + generator.random(rows)) / rows
        counts = np.ceil(places * np.cos(np.pi / 2 * generator.permutation(even))).clip(1)
        ranks = generator.random(shape).argsort(1).argsort(1)
        return ranks < counts[:, None]

    def check(self) -> None:
        self.palette.check()

    def sizes(self) -> dict[str, int]:
        return {"vocabulary": len(self.tokenizer), "codes": len(self.palette.codes), "side": self.palette.side}

    def files(self) -> dict[str, Callable[[Path], object]]:
        fields = {"palette": vars(Palette(*self._palette())), "caption_dropout": self.caption_dropout}
        text = json.dumps(fields)
        return {TOKENIZER: self.tokenizer.save, PROCESSOR: lambda path: path.write_text(text, encoding="utf-8")}

    def _palette(self) -> tuple[int, int, int, tuple[tuple[float, ...], ...]]:
        return self.palette.size, self.palette.channels, self.palette.patch, self.palette.codes

    @classmethod
    def load(cls, folder: Path) -> "DrawingProcessor":
        saved = from_dict(_Saved, read_json(folder / PROCESSOR), str(folder / PROCESSOR))
        return cls(saved.palette, load_tokenizer(folder / TOKENIZER), saved.caption_dropout)


@dataclass
class _Saved:
    """What the processor's file holds."""

    palette: Palette
    caption_dropout: float
