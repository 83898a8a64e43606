"""Images of a class: what a generator makes of noise and labels, and where a place of it looks meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from foveate.errors import UserError, one_line
from foveate.sight import look
from foveate.tasks.former.predictor import Predictor
from foveate.viewer.figures import plot_image_attention

BATCH = 128
"""Images that are generated together."""


@dataclass
class Generated:
    """The images of a label."""

    label: str
    file: Path
    pixels: np.ndarray = field(repr=False)
    """(samples, h, w, C) in 8 bits."""
    noise: Tensor = field(repr=False)
    """What they were generated from."""
    place: tuple[int, int] | None = None

    @property
    def line(self) -> str:
        """The file and the label, with a tab between them."""
        return f"{one_line(self.file)}\t{one_line(self.label)}"


def draw_noise(predictor: Predictor, count: int, seed: int) -> Tensor:
    """What so many images are generated from."""
    model: Any = predictor.model
    return torch.randn(count, model.config.noise, generator=torch.Generator().manual_seed(seed))


def generate(predictor: Predictor, noise: Tensor, labels: Sequence[str]) -> np.ndarray:
    """An image (h, w, C) in 8 bits of each label."""
    model: Any = predictor.model
    found = []
    for begin in range(0, len(labels), BATCH):
        own = noise[begin : begin + BATCH].to(predictor.device)
        with torch.inference_mode():
            pixels = model.eval().generator(own, _classes(predictor, labels[begin : begin + BATCH])).float().cpu()
        found.append(((pixels + 2) * 63.75).round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy())
    return np.concatenate(found)


def _classes(predictor: Predictor, labels: Sequence[str]) -> Tensor:
    numbers = {label: number for number, label in enumerate(predictor.processor.labels)}
    return torch.tensor([numbers[label] for label in labels], device=predictor.device)


def plot_place(predictor: Predictor, prediction: Generated) -> Any:
    """The first image, with the chosen place in red, beside where this place looks; None if the model does not attend.

    Raises UserError for a place outside of the feature map.
    """
    model: Any = predictor.model
    classes = _classes(predictor, [prediction.label])
    with torch.inference_mode(), look(model.generator) as sight:
        model.generator(prediction.noise[:1], classes)
    if not sight.sites:
        return None
    weights = sight[sight.sites[-1]].weights()[0, 0].cpu()
    side = round(len(weights) ** 0.5)
    row, column = prediction.place or (side // 2, side // 2)
    if not (0 <= row < side and 0 <= column < side):
        raise UserError(f"place is {row} {column}, but the feature map has {side} x {side} places, from 0")
    shown = prediction.pixels[0].repeat(3, -1) if prediction.pixels.shape[-1] == 1 else prediction.pixels[0].copy()
    times = len(shown) / side
    rows, columns = (slice(int(one * times), int((one + 1) * times)) for one in (row, column))
    shown[rows, columns] = 255, 0, 0
    return plot_image_attention(shown, weights[row * side + column].view(side, side).numpy(), prediction.label)
