"""Self-attention with the relative positions of Transformer-XL, whose distances each layer projects."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Bias, Mask, Memory, RelativeEncoding
from foveate.errors import UserError
from foveate.nn.attention import MultiHeadAttention, split_heads
from foveate.nn.beam_sources import BeamSources
from foveate.nn.rotary import Rotation
from foveate.nn.two_stream import distance_waves


class RelativeAttention(MultiHeadAttention):
    """Scores `(q_i + u)·k_j + (q_i + v)·r(j - i)`, divided by the root of the head width.

    r projects the waves of a distance.

    (Dai et al. 2019, section 3.3, https://arxiv.org/abs/1901.02860; Gopher, Rae et al. 2021, has it in each layer.)
    """

    def __init__(self, width: int, heads: int, **options: int | float | bool | None) -> None:
        super().__init__(width, heads, **options)  # type: ignore[arg-type]
        if self.group != 1:
            raise UserError("relative positions need as many key_value_heads as heads")
        self.distance = nn.Linear(width, heads * self.head_width, bias=False)
        self.content_offset, self.distance_offset = (
            nn.Parameter(torch.zeros(heads, 1, self.head_width)) for _ in range(2)
        )

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        source: Float[Tensor, "B S E"] | Memory | None = None,
        mask: Mask | Tensor | None = None,
        bias: Bias | Tensor | None = None,
        past: Memory | None = None,
        beams: BeamSources | None = None,
        rotation: Rotation | None = None,
        positions: Float[Tensor, "... T C"] | None = None,
        source_positions: Float[Tensor, "... S E"] | None = None,
    ) -> Float[Tensor, "B T O"]:
        """Attend from x to itself and its past; distances count the columns of both."""
        queries, keys, values = self._project(x)
        if past is None:
            past = self._memory(keys, values)
        else:
            past.append(keys, values)
        length, count = past.length, x.shape[1]
        vectors = split_heads(self.distance(distance_waves(length, x.shape[-1], x))[None], self.head_width)[0]
        rows = torch.arange(length - count, length, device=x.device).expand(len(x), -1)
        places = rows if length > count else None
        # The bias reads the queries of attention, which have the content's offset already.
        offset = self.distance_offset - self.content_offset
        relative = RelativeEncoding(vectors, offset, self.head_width**-0.5, places)
        return self._attend(queries + self.content_offset, past, mask, relative)
