"""Word vectors from characters: convolutions, highway layers, a projection (Kim et al. 2016,
https://arxiv.org/abs/1508.06615).

K  characters of the longest word
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn


class Highway(nn.Module):
    """`g * x + (1 - g) * relu(W x + b)` with a learned gate g (Srivastava et al. 2015)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        nn.init.ones_(self.gate.bias)  # so that training begins with passing most of x on

    def forward(self, x: Float[Tensor, "... C"]) -> Float[Tensor, "... C"]:
        gate = torch.sigmoid(self.gate(x))
        return gate * x + (1 - gate) * F.relu(self.layer(x))


class CharacterEncoder(nn.Module):
    """The vector of each word from its characters alone, so that no word is unknown.

    `filters` are how many filters there are of one, two, three, ... characters. Each gives its greatest value over the
    word, and highway layers combine them.
    """

    def __init__(self, characters: int, embedding: int, filters: Sequence[int], highways: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, embedding)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(embedding, count, kernel) for kernel, count in enumerate(filters, start=1)
        )
        self.highways = nn.Sequential(*(Highway(sum(filters)) for _ in range(highways)))
        self.project = nn.Linear(sum(filters), width)

    def forward(self, characters: Int[Tensor, "B T K"]) -> Float[Tensor, "B T C"]:
        """K is at least the number of characters of the longest filter."""
        x = self.embedding(characters.flatten(0, 1)).mT
        found = [convolution(x).amax(-1) for convolution in self.convolutions]
        return self.project(self.highways(F.relu(torch.cat(found, -1)))).unflatten(0, characters.shape[:2])
