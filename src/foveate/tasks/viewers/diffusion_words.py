"""Which places of a drawing looked at which word of its caption, over several steps of its making."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from foveate.sight import Sight, Site
from foveate.tasks.viewers.joint import grid_size

SIDE = 64
"""Rows and columns of the maps in the picture of the words."""


def is_word_site(site: Site, text: int, ratio: float) -> bool:
    """Whether places of the image attend to the text."""
    *_, queries, keys = site.shape
    return keys == text != queries and grid_size(queries, ratio) is not None


def mean_word_maps(sights: Sequence[Sight], text: int, ratio: float) -> Float[Tensor, "L i j"]:
    """For each token the attention that places of the image pay to it: the mean over steps, sites and heads."""
    total, count = torch.zeros(text, SIDE, SIDE), 0
    for sight in sights:
        for site in sight:
            if is_word_site(site, text, ratio):
                weights = site.weights()[0].mean(0).float().cpu()
                grid = weights.T.unflatten(1, grid_size(len(weights), ratio) or ())
                total += F.interpolate(grid[None], (SIDE, SIDE), mode="bilinear", align_corners=False)[0]
                count += 1
    return total / max(1, count)


def word_strip(shown: np.ndarray, pieces: list[str], sights: Sequence[Sight], ratio: float) -> Any:
    """The drawing once for each word of its caption, bright where the word was looked at."""
    from foveate.viewer.figures import plot_word_strip

    maps = mean_word_maps(sights, len(pieces), ratio)
    words, found = join_pieces(pieces, maps)
    return plot_word_strip(shown, words, found)


def join_pieces(pieces: Sequence[str], maps: Float[Tensor, "L i j"]) -> tuple[list[str], Float[Tensor, "W i j"]]:
    """Whole words, without special tokens and padding, each with the sum of the maps of its pieces."""
    words: list[str] = []
    found: list[Tensor] = []
    for piece, own in zip(pieces, maps, strict=True):
        if piece.startswith(("<", "[")):
            continue
        if piece.startswith("·") and words:
            words[-1] += piece[1:]
            found[-1] = found[-1] + own
        else:
            words.append(piece)
            found.append(own)
    return words, torch.stack(found) if found else maps[:0]
