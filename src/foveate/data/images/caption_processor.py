"""Captioned images become tensors: pixels and the tokens of a caption."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from torch import Tensor

from foveate.config import from_dict
from foveate.contracts import IGNORE, Batch, label_batch
from foveate.data.dataset import Dataset
from foveate.data.images.captions import CaptionedImage
from foveate.data.images.decoded import decode
from foveate.data.images.labelled import ImageFormat
from foveate.data.images.processor import normalize
from foveate.data.processor import PROCESSOR, Processor
from foveate.data.ragged import padded
from foveate.data.tokens.tokenizers import SubwordTokenizer, load_tokenizer
from foveate.files import read_json

TOKENIZER = "tokenizer.json"

Prepared = tuple[np.ndarray, list[int]]
"""An image (C, h, w) in 8 bits, and the tokens of one of its captions."""


@dataclass(frozen=True)
class PreparedCaptions(Sequence[Prepared]):
    """Images, decoded once, with each of their captions."""

    pixels: np.ndarray
    examples: list[int]
    """The number of each caption's image."""
    captions: list[list[int]]

    def __len__(self) -> int:
        return len(self.captions)

    def __getitem__(self, number: Any) -> Any:
        return self.pixels[self.examples[number]], self.captions[number]


@dataclass
class CaptionProcessor(Processor[CaptionedImage]):
    """Turns captioned images into inputs `pixels` (B, C, h, w), `target` (B, T), `target_lengths` (B,) and labels.

    An image with several captions is an example for each.
    """

    format: ImageFormat
    tokenizer: SubwordTokenizer

    def prepare(self, dataset: Dataset[CaptionedImage]) -> PreparedCaptions:
        images = [number for number, example in enumerate(dataset) for _ in example.captions]
        captions = self.tokenizer.encode([caption for example in dataset for caption in example.captions])
        return PreparedCaptions(decode(dataset, self.format), images, captions)

    def batch(self, prepared: Sequence[Prepared], generator: np.random.Generator | None) -> Batch:
        captions = [tokens for _, tokens in prepared]
        special = self.tokenizer.special
        target, lengths = padded([np.array([special.start, *tokens]) for tokens in captions], special.pad)
        labels, _ = padded([np.array([*tokens, special.end]) for tokens in captions], IGNORE)
        pixels = normalize(np.stack([image for image, _ in prepared]))
        return label_batch({"pixels": pixels, "target": target, "target_lengths": lengths}, labels, "images")

    def pixels(self, images: Sequence[PIL.Image.Image]) -> Tensor:
        """Images as a model reads them, (B, C, h, w)."""
        return normalize(np.stack([self.format.pixels(image) for image in images]))

    def sizes(self) -> dict[str, int]:
        return {
            "vocabulary": len(self.tokenizer),
            "channels": self.format.channels,
            "image_size": self.format.size,
        }

    def files(self) -> dict[str, Callable[[Path], object]]:
        text = json.dumps(asdict(self.format))
        return {TOKENIZER: self.tokenizer.save, PROCESSOR: lambda path: path.write_text(text, encoding="utf-8")}

    @classmethod
    def load(cls, folder: Path) -> "CaptionProcessor":
        saved = from_dict(ImageFormat, read_json(folder / PROCESSOR), str(folder / PROCESSOR))
        return cls(saved, load_tokenizer(folder / TOKENIZER))
