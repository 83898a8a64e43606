"""Self-attention between pooled places of a feature map (MViTv2, Li et al. 2022, https://arxiv.org/abs/2112.01526)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Memory, RelativeGridKeys, ScaledDot, attend
from foveate.nn.depthwise import depthwise

EPSILON = 1e-6
"""What its layer norms add to the variance."""


class PooledAttention(nn.Module):
    """Queries, keys and values are pooled before the heads attend: C -> D.

    Fewer queries give a smaller map; fewer keys and values make attention cheaper. The scores have decomposed relative
    positions that read the queries, and the pooled queries are added to what was found (residual pooling).
    """

    attends = True

    def __init__(
        self,
        width: int,
        outer: int,
        heads: int,
        side: int,
        query_stride: int = 1,
        key_stride: int = 1,
        dropout: float = 0.0,
    ) -> None:
        """Relative positions are learned for maps of `side` rows and columns. Strides are those of the pooling."""
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, outer) for _ in range(3))
        head_width = outer // heads
        self.query_pool = HeadPooling(head_width, query_stride)
        self.key_pool, self.value_pool = HeadPooling(head_width, key_stride), HeadPooling(head_width, key_stride)
        finer = -(-side // min(query_stride, key_stride))
        self.position = RelativeGridKeys(head_width, finer)
        self.output = nn.Linear(outer, outer)
        self.dropout = dropout

    def forward(self, x: Float[Tensor, "B h w C"]) -> Float[Tensor, "B i j D"]:
        queries, keys = self.query_pool(self.query(x)), self.key_pool(self.key(x))
        values = self.value_pool(self.value(x))
        grid = queries.shape[2], queries.shape[3]
        bias = self.position.with_grids(grid, (keys.shape[2], keys.shape[3]))
        queries, keys, values = (part.flatten(2, 3) for part in (queries, keys, values))
        memory = Memory(keys, values, ScaledDot())
        memory.projected = True
        found = attend(queries, memory, bias=bias, dropout=self.dropout if self.training else 0.0)
        return self.output((found + queries).transpose(1, 2).flatten(2)).unflatten(1, grid)


class HeadPooling(nn.Module):
    """A 3x3 convolution of each channel for itself, the same for all heads, then layer norm of each head's vector."""

    def __init__(self, head_width: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.weight = nn.Parameter(torch.empty(head_width, 1, 3, 3))
        nn.init.kaiming_uniform_(self.weight, a=5**0.5)
        self.norm = nn.LayerNorm(head_width, EPSILON)

    def forward(self, x: Float[Tensor, "B h w C"]) -> Float[Tensor, "B H i j D"]:
        heads = x.shape[-1] // len(self.weight)
        # One convolution for all heads: as it is, the map is in the fastest order for it, channels last.
        weight = self.weight.repeat(heads, 1, 1, 1)
        pooled = depthwise(x.permute(0, 3, 1, 2), weight, None, self.stride, 1).permute(0, 2, 3, 1)
        return self.norm(pooled.unflatten(-1, (heads, -1))).permute(0, 3, 1, 2, 4)
