"""Maxout layer (Goodfellow et al. 2013, https://arxiv.org/abs/1302.4389)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Maxout(nn.Module):
    """Each output is the greater of two linear functions of the concatenated inputs."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.pieces = nn.Linear(width, 2 * outputs)

    def forward(self, parts: Sequence[Float[Tensor, "B T _"]]) -> Float[Tensor, "B T O"]:
        return self.pieces(torch.cat(list(parts), -1)).unflatten(-1, (-1, 2)).amax(-1)
