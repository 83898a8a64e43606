"""How much of the attention to an image is where it should be."""

import torch
from jaxtyping import Float
from torch import Tensor

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, as shares of an image's sides."""


def share_in_box(weights: Float[Tensor, "i j"], box: Box) -> float:
    """The share of the weights that lies in a box; places count by their area inside."""
    rows, columns = weights.shape
    left, top, right, bottom = box
    down, across = _overlap(rows, top, bottom), _overlap(columns, left, right)
    return float((weights * down[:, None] * across).sum() / weights.sum())


def _overlap(count: int, begin: float, end: float) -> Tensor:
    """How much of each of `count` equal parts of a line from 0 to 1 is between two points."""
    edges = torch.arange(count + 1, dtype=torch.float64) / count
    return ((edges[1:].clamp(max=end) - edges[:-1].clamp(min=begin)).clamp(min=0) * count).float()


def area(box: Box) -> float:
    """The share of the image that a box covers: what uniform attention has in it."""
    left, top, right, bottom = box
    return (right - left) * (bottom - top)
