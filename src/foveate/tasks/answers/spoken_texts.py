"""How texts are said: what is said in one go, and the audio tokens that are drawn for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from foveate.data.sounds.speaking_processor import SpeakingProcessor
from foveate.decoding import sample
from foveate.decoding.sampling import check_sampling
from foveate.errors import TextError, one_line
from foveate.tasks.former.predictor import Predictor
from foveate.training.settings import check_seed

BATCH = 100
"""Sounds that are made or measured together."""


@dataclass
class Drawing:
    """How tokens are drawn."""

    temperature: float = 0.8
    """Below 1 prefers likely tokens: sounds become longer, because the end is seldom the likeliest. Above 1 is more
    random."""
    seed: int = 1
    """Seed of random draws."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        check_sampling(1, self.temperature, None, None)
        check_seed(self.seed)


def split_words(processor: SpeakingProcessor, text: str, place: int) -> list[str]:
    """What of a text is said in one go: all of it, if the training had such a text, else its words."""
    words = [text.strip()] if text.strip() in processor.texts else text.split()
    for word in words:
        if strange := sorted(set(word) - set(processor.characters)):
            known = ", ".join(processor.texts[:10])
            raise TextError(place, f"'{one_line(strange[0])}' was in no text of the training; it had such as {known}")
    return words


def say(predictor: Predictor, texts: Sequence[str], options: Drawing) -> list[list[int]]:
    """The codes of the sound of each text."""
    processor: SpeakingProcessor = predictor.processor
    model: Any = predictor.model
    generator = torch.Generator(predictor.device).manual_seed(options.seed)
    found: list[list[int]] = []
    for begin in range(0, len(texts), BATCH):
        inputs = predictor.on_device(processor.inputs([processor.read(text) for text in texts[begin : begin + BATCH]]))
        drawn = sample(
            model, inputs, processor.special, processor.longest + 1, 1, options.temperature, generator=generator
        )
        found += [processor.codes(one.tokens) or [0] for (one,) in drawn]
    return found
