"""Self-attention by the difference of two maps."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Bias, Mask, Memory, attend
from foveate.errors import UserError
from foveate.nn.attention import MultiHeadAttention, in_groups


class DifferentialAttention(MultiHeadAttention):
    """H heads in pairs, of which one map less a learned share of the other reads the values of both (Ye et al. 2024,
    https://arxiv.org/abs/2410.05258): what both look at cancels out. A look shows the maps of all H heads.

    `number` is that of the layer, from 0: deeper layers begin with a larger share.
    """

    def __init__(self, width: int, heads: int, number: int = 0, **options: Any) -> None:
        super().__init__(width, heads, **options)
        if heads % 2 or heads // self.group % 2 or options.get("head_widths") is not None:
            raise UserError("differential attention needs pairs of heads of equal width, with pairs of keys")
        if self.gate is not None:
            raise UserError("differential attention has no gates of heads: leave head_gate out")
        self.start = 0.8 - 0.6 * math.exp(-0.3 * number)
        self.share = nn.Parameter(torch.empty(2, 2, self.head_width).normal_(std=0.1))

    def _keys_values(self, source: Tensor, positions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Keys of all heads, and the values of each pair, joined as both of its maps read them."""
        keys, values = super()._keys_values(source, positions)
        return keys, torch.cat(values.unflatten(1, (2, -1)).unbind(1), -1)

    def _attend(
        self,
        queries: Tensor,
        memory: Memory,
        mask: Mask | Tensor | None,
        bias: Bias | Tensor | None,
    ) -> Float[Tensor, "B T HV"]:
        dtype, groups = queries.dtype, () if self.group == 1 else (self.group,)
        queries = queries.to(memory.values.dtype).unflatten(1, (2, -1, *groups))
        queries, mask, bias = in_groups(queries, mask, bias)
        dropout = self.dropout if self.training else 0.0
        found = attend(queries, _Pairs(memory), mask=mask, bias=bias, select=self.select, dropout=dropout)
        first, second = self.share.prod(1).sum(-1).exp()
        output = found[:, 0] - (first - second + self.start) * found[:, 1]
        output = (1 - self.start) * F.rms_norm(output, output.shape[-1:], eps=1e-5)
        return memory.scatter(output.flatten(1, -3).transpose(1, 2).flatten(2).to(dtype))


class _Pairs(Memory):
    """A memory as both maps of each pair read it: each with keys of its own, with the same values."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.score, self.projected = memory, memory.score, memory.projected

    @property
    def keys(self) -> Float[Tensor, "B 2 ... S P"]:
        return self.memory.keys.unflatten(1, (2, -1))

    @property
    def values(self) -> Float[Tensor, "B 1 ... S V"]:
        return self.memory.values[:, None]
