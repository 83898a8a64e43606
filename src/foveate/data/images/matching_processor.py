"""Captioned images become tensors to compare: pixels, the tokens of a caption, and which captions are equal."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from foveate.contracts import Batch, label_batch
from foveate.data.images.caption_processor import CaptionProcessor, Prepared
from foveate.data.images.processor import normalize
from foveate.data.ragged import padded


@dataclass
class MatchingProcessor(CaptionProcessor):
    """Turns captioned images into inputs `pixels` (B, C, h, w), `tokens` (B, T) and `lengths` (B,), and labels (B, 1).

    A label is the number of the first equal caption of the batch. An image with several captions is an example for
    each.
    """

    def batch(self, prepared: Sequence[Prepared], generator: np.random.Generator | None) -> Batch:
        captions = [tuple(tokens) for _, tokens in prepared]
        first = {caption: place for place, caption in reversed([*enumerate(captions)])}
        labels = torch.tensor([[first[caption]] for caption in captions])
        pixels = normalize(np.stack([image for image, _ in prepared]))
        return label_batch({"pixels": pixels, **self.read(captions)}, labels, "images")

    def read(self, captions: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """The inputs for the tokens of captions."""
        special = self.tokenizer.special
        rows = [np.array([special.start, *caption, special.end]) for caption in captions]
        tokens, lengths = padded(rows, special.pad)
        return {"tokens": tokens, "lengths": lengths}
