"""How captions are drawn: options, and the tokens of drawings."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from foveate.data.images.drawing_processor import DrawingProcessor
from foveate.decoding import Unmasking, unmask
from foveate.forms.image_grid import check_samples
from foveate.tasks.former.predictor import Predictor
from foveate.training.settings import check_seed

BATCH = 64
"""Images that are drawn together."""


@dataclass
class Sketching(Unmasking):
    """How captions are drawn."""

    out: Path = Path("drawing.png")
    """The file to draw into (.png): a row for each caption."""
    samples: int = 4
    """Drawings of each caption, side by side."""
    seed: int = 1
    """Seed of random draws."""

    def check(self) -> None:
        super().check()
        check_samples(self.samples)
        check_seed(self.seed)


def draw(predictor: Predictor, captions: Sequence[str], options: Sketching) -> np.ndarray:
    """The tokens (N, T) of a drawing of each caption."""
    processor: DrawingProcessor = predictor.processor
    generator = torch.Generator(predictor.device).manual_seed(options.seed)
    words = processor.tokenizer.encode(list(captions))
    found = []
    for begin in range(0, len(words), BATCH):
        group = words[begin : begin + BATCH]
        condition = predictor.on_device(processor.read(group))
        nothing = predictor.on_device(processor.read([()] * len(group)))
        hidden = processor.hidden(len(group)).to(predictor.device)
        found.append(unmask(predictor.model, hidden, condition, nothing, options, generator).cpu().numpy())
    return np.concatenate(found)
