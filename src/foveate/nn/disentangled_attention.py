"""Self-attention with DeBERTa's relative positions (He et al. 2021, https://arxiv.org/abs/2006.03654)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Bias, Disentangled, Distances, Mask, Memory
from foveate.nn.attention import MultiHeadAttention, split_heads
from foveate.nn.dropout import Dropout


class DistanceVectors(nn.Module, Bias):
    """A vector for each of 2 L distances, which all blocks share: the bias of a layer is what it makes of them."""

    def __init__(self, width: int, distances: Distances, epsilon: float | None, dropout: float) -> None:
        """Vectors are normalized if there is an `epsilon`."""
        super().__init__()
        self.distances = distances
        self.table = nn.Parameter(torch.empty(2 * distances.most, width).normal_(std=0.02))
        self.norm = None if epsilon is None else nn.LayerNorm(width, epsilon)
        self.dropout = Dropout(dropout)

    def forward(self) -> Float[Tensor, "L C"]:
        return self.dropout(self.table if self.norm is None else self.norm(self.table))

    def block(self, queries: Tensor, rows: range, columns: range) -> Tensor:
        raise TypeError("vectors of distances are no numbers to add: DisentangledAttention projects them")


class DisentangledAttention(MultiHeadAttention):
    """Scores `(q_i·k_j + q_i·p(i - j) + k_j·r(i - j)) / sqrt(D (1 + terms))`, with the two projections p and r of the
    vectors of distances. With `share`, these are the projections of keys and of queries."""

    def __init__(
        self, width: int, heads: int, to_position: bool, from_position: bool, share: bool = False, **options: Any
    ) -> None:
        super().__init__(width, heads, **options)
        self.to_position, self.from_position, self.share = to_position, from_position, share
        inner = heads * self.head_width
        own_bias = options.get("bias", True) and options.get("key_bias", True)
        self.position_key = nn.Linear(width, inner, own_bias) if to_position and not share else None
        self.position_query = nn.Linear(width, inner) if from_position and not share else None

    def _attend(
        self,
        queries: Tensor,
        memory: Memory,
        mask: Mask | Tensor | None,
        bias: Bias | Tensor | None,
    ) -> Float[Tensor, "B T HV"]:
        assert isinstance(bias, DistanceVectors)
        table, length, count = bias()[None], memory.length, queries.shape[2]
        scale = (1 + self.to_position + self.from_position) ** -0.5
        positions = asked = None
        if self.to_position:
            positions = split_heads((self.position_key or self.key)(table), self.head_width)[0]
        if self.from_position:
            asked = split_heads((self.position_query or self.query)(table), self.head_width)[0] * scale
        # The queries are scaled for both products that they take part in; the score divides by sqrt(D).
        relative = Disentangled(
            bias.distances, self.head_width**-0.5, positions, memory.keys, asked, start=length - count
        )
        return super()._attend(queries * scale, memory, mask, relative)
