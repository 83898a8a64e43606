"""What figures are drawn of: weights with the names of their rows and columns."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from torch import Tensor


class Alignment(NamedTuple):
    """A map of weights from 0 to 1, with the tokens of its rows and columns in the form of `Tokenizer.pieces`."""

    weights: Float[Tensor, "T S"]
    target: Sequence[str]
    source: Sequence[str]
    title: str = ""
    shows: str = "weight"
    """What the numbers are."""


class WordRow(NamedTuple):
    """The text of one model about an image, and where it looked for each word."""

    name: str
    words: Sequence[str]
    maps: Float[Tensor, "T i j"]
    pixels: np.ndarray | None = None
    """The image (h, w, channels) in 8 bits, where it is not that of all rows."""
