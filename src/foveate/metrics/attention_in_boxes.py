"""How much of the attention to an image is where it should be."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from foveate.contracts import Tokenizer

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, as shares of an image's sides."""


def share_in_box(weights: Float[Tensor, "i j"], box: Box) -> float:
    """The share of the weights that lies in a box; places count by their area inside."""
    rows, columns = weights.shape
    left, top, right, bottom = box
    down, across = _overlap(rows, top, bottom), _overlap(columns, left, right)
    return float((weights * down[:, None] * across).sum() / weights.sum())


def _overlap(count: int, begin: float, end: float) -> Tensor:
    """Computes how much of each of `count` equal parts of a line from 0 to 1 is between two points."""
    edges = torch.arange(count + 1, dtype=torch.float64) / count
    return ((edges[1:].clamp(max=end) - edges[:-1].clamp(min=begin)).clamp(min=0) * count).float()


def area(box: Box) -> float:
    """The share of the image that a box covers: what uniform attention has in it."""
    left, top, right, bottom = box
    return (right - left) * (bottom - top)


def shares_of_names(
    tokenizer: Tokenizer, examples: Sequence[Any], maps: Callable[[Any], Sequence[Float[Tensor, "i j"]]]
) -> dict[str, float]:
    """The share of the attention of names that is inside their boxes, and the boxes' own share of the image, in
    percent: means over all regions that the first captions of `examples` name. Nothing where no box is known.

    `maps(example)` has the weights of each token of its first caption; nothing where the model does not attend.
    """
    found = []
    for example in examples:
        own = maps(example) if example.regions else ()
        for region in example.regions if own else ():
            ends = tokenizer.encode([example.captions[0][: region.start], example.captions[0][: region.end]])
            first = min(len(ends[0]), len(ends[1]) - 1)  # of "d'avion" the whole word is the name
            span = torch.stack([*own[first : len(ends[1])]])
            found.append((share_in_box(span.mean(0), region.box), area(region.box)))
    if not found:
        return {}
    inside, uniform = np.mean(found, 0).tolist()
    return {"attention_in_box": 100 * inside, "uniform_in_box": 100 * uniform}
