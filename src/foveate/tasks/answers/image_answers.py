"""What a model answers to questions about images, and where it looks meanwhile."""

from collections.abc import Sequence
from typing import Any

import PIL.Image
import torch

from foveate.sight import look
from foveate.tasks.former.predictor import Predictor

BATCH = 128
"""Questions that are answered together."""


def model_inputs(predictor: Predictor, images: Sequence[PIL.Image.Image], questions: Sequence[str]) -> dict[str, Any]:
    """The inputs of the model for a question about each image."""
    processor = predictor.processor
    return {"pixels": processor.pixels(images), **processor.ask(processor.tokens(questions))}


def answer_probabilities(
    predictor: Predictor, images: Sequence[PIL.Image.Image], questions: Sequence[str]
) -> list[list[float]]:
    """The probability of each answer to each question."""
    found: list[list[float]] = []
    for begin in range(0, len(images), BATCH):
        inputs = model_inputs(predictor, images[begin : begin + BATCH], questions[begin : begin + BATCH])
        found += predictor.forward(inputs).logits[:, 0].float().softmax(-1).tolist()
    return found


def glimpse_maps(predictor: Predictor, images: Sequence[PIL.Image.Image], questions: Sequence[str]) -> Any:
    """The weights (G, i, j) of the glimpses at each image; None if the model does not attend."""
    with torch.inference_mode(), look(predictor.model, sites=["glimpses*", "hops*"]) as sight:
        predictor.forward(model_inputs(predictor, images, questions))
    if not sight.sites:
        return None
    weights = torch.cat([sight[site].weights()[:, :, 0] for site in sight.sites], 1).float().cpu()
    return weights.unflatten(-1, (round(weights.shape[-1] ** 0.5), -1))
