"""Self-attention with the relative positions of Transformer-XL, whose distances each layer projects."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Bias, Mask, Memory, RelativeEncoding
from foveate.errors import UserError
from foveate.nn.attention import MultiHeadAttention, split_heads
from foveate.nn.two_stream import distance_waves


class RelativeAttention(MultiHeadAttention):
    """Scores `(q_i + u)·k_j + (q_i + v)·r(j - i)`, divided by the root of the head width.

    r projects the waves of a distance.

    (Dai et al. 2019, section 3.3, https://arxiv.org/abs/1901.02860; Gopher, Rae et al. 2021, has it in each layer.)
    """

    def __init__(self, width: int, heads: int, **options: Any) -> None:
        super().__init__(width, heads, **options)
        if self.group != 1:
            raise UserError("relative positions need as many key_value_heads as heads")
        self.distance = nn.Linear(width, heads * self.head_width, bias=False)
        self.content_offset, self.distance_offset = (
            nn.Parameter(torch.zeros(heads, 1, self.head_width)) for _ in range(2)
        )

    def _attend(
        self,
        queries: Tensor,
        memory: Memory,
        mask: Mask | Tensor | None,
        bias: Bias | Tensor | None,
    ) -> Float[Tensor, "B T HV"]:
        """Queries are the last of the memory's columns; distances count these columns."""
        length, count = memory.length, queries.shape[2]
        waves = distance_waves(length, self.distance.in_features, queries)
        vectors = split_heads(self.distance(waves)[None], self.head_width)[0]
        rows = torch.arange(length - count, length, device=queries.device).expand(len(queries), -1)
        # The bias reads the queries of attention, which have the content's offset already.
        offset = self.distance_offset - self.content_offset
        relative = RelativeEncoding(vectors, offset, self.head_width**-0.5, rows if length > count else None)
        return super()._attend(queries + self.content_offset, memory, mask, relative)
