"""How captions of images are written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import PIL.Image
import torch

from foveate.contracts import Hypothesis
from foveate.decoding import Decoding, decode
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.protocols import Writing

BATCH = 64
"""Images that are described together."""


@dataclass
class CaptionWriting(Writing):
    """How captions are written: length_extra is the greatest number of tokens."""

    decoding: Decoding = field(default_factory=lambda: Decoding(length_extra=40, width=3))
    heads: bool = False
    """In a picture, a row for each head of the block that looks most decidedly."""
    beside: tuple[Path, ...] = ()
    """In a picture, rows below for other captioners, by their folders."""


def describe(predictor: Predictor, images: Sequence[PIL.Image.Image], options: CaptionWriting) -> Iterator[Hypothesis]:
    """The best caption of each image."""
    model: Any = predictor.model
    generator = torch.Generator(predictor.device).manual_seed(options.seed)
    special = predictor.processor.tokenizer.special
    for begin in range(0, len(images), BATCH):
        pixels = predictor.processor.pixels(images[begin : begin + BATCH]).to(predictor.device)
        no_source = torch.zeros(len(pixels), dtype=torch.long, device=predictor.device)
        with torch.inference_mode():
            found = decode(model, {"pixels": pixels}, special, no_source, options.decoding, generator)
        yield from (best for best, *_ in found)
