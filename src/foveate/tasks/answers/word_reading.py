"""How the word in an image is searched."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import PIL.Image

from foveate.decoding import beam, greedy
from foveate.errors import at_least
from foveate.tasks.former.predictor import Predictor

BATCH = 128
"""Images that are read together."""


@dataclass
class Search:
    """How the text is searched."""

    width: int = 5
    """Width of the beam search; 1 is greedy search."""
    length: int = 40
    """Characters of the longest text."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        for name in ("width", "length"):
            at_least(1, name, getattr(self, name))


def read_words(predictor: Predictor, images: Sequence[PIL.Image.Image], options: Search) -> list[tuple[str, float]]:
    """The text in each image and its probability."""
    found = []
    for begin in range(0, len(images), BATCH):
        inputs = predictor.on_device(predictor.processor.inputs(images[begin : begin + BATCH]))
        model: Any = predictor.model
        if options.width == 1:
            best = greedy(model, inputs, predictor.processor.special, options.length + 1)
        else:
            special = predictor.processor.special
            best = [some[0] for some in beam(model, inputs, special, options.length + 1, options.width)]
        found += [(predictor.processor.decode(one.tokens), float(np.exp(one.log_prob))) for one in best]
    return found
