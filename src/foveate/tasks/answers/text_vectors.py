"""What an auto-encoder keeps of texts in vectors, and what it writes again from them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from foveate.data import Passage, joined, sentences
from foveate.decoding import Decoding
from foveate.tasks.examples.text_task import TOKENS_TOGETHER
from foveate.tasks.former.predictor import Predictor


def passage_of(text: str) -> Passage:
    """A user's text; its sentences are told by their marks."""
    return Passage("the input", "", tuple(sentences(" ".join(text.split()))))


def text_vectors(predictor: Predictor, texts: Sequence[str]) -> np.ndarray:
    """What an auto-encoder keeps of each text: (number of texts, width). None may be empty."""
    return vectors_of(predictor, [passage_of(text) for text in texts]).cpu().numpy()


def vectors_of(predictor: Predictor, passages: Sequence[Passage]) -> Float[Tensor, "M C"]:
    """What the model keeps of each passage."""
    model: Any = predictor.model
    rewriting = _rewriting(predictor)
    found = torch.zeros(len(passages), model.config.width, device=predictor.device)
    for places, inputs in rewriting.read(passages, TOKENS_TOGETHER):
        with torch.inference_mode():
            found[places] = model.vectors(**predictor.on_device(inputs))
    return found


def rewrite(predictor: Predictor, passages: Sequence[Passage], decoding: Decoding, seed: int = 1) -> list[str]:
    """Each passage as the model writes it again from its vector."""
    found, rewriting = [""] * len(passages), _rewriting(predictor)
    generator = torch.Generator(predictor.device).manual_seed(seed)
    for places, inputs in rewriting.read(passages, TOKENS_TOGETHER):
        with torch.inference_mode():
            written = rewriting.write(predictor.model, predictor.on_device(inputs), decoding, generator)
        for place, parts in zip(places, written, strict=True):
            found[place] = joined(predictor.processor.tokenizer.decode(parts))
    return found


def _rewriting(predictor: Predictor) -> Any:
    task: Any = predictor.task
    return task.rewriting(predictor.processor)
