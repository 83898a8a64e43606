"""Self-attention whose heads share one narrow vector for each place, which is all that decoding keeps."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Bias, Mask, Memory, ScaledDot, Score, Selection, Soft, attend
from foveate.errors import UserError
from foveate.nn.attention import split_heads
from foveate.nn.rotary import Turn


class LatentMemory(Memory):
    """What each place keeps: its turned key, and behind it the latent vector, which is key and value at once."""

    def __init__(self, kept: Float[Tensor, "B 1 1 S P"], latent_width: int, score: Score, expected: int = 0) -> None:
        super().__init__(kept, kept[..., :0], score, expected)
        self.latent_width = latent_width

    @property
    def values(self) -> Float[Tensor, "... S V"]:
        return self.keys[..., -self.latent_width :]


class LatentAttention(nn.Module):
    """H heads whose keys and values are projections of a latent vector (multi-head latent attention, DeepSeek-AI 2024,
    https://arxiv.org/abs/2405.04434).

    Each head compares `head_width` numbers of what a place says; `turned` numbers more tell where it stands, with keys
    that all heads share, since what turns with its place cannot be projected later. Whole texts are read with keys and
    values of each head. In steps the heads' projections are moved to the queries and the output, so that all heads look
    at the latent vectors themselves, and no others are kept: `latent_width` + `turned` numbers for each place.
    """

    attends = True

    def __init__(
        self,
        width: int,
        heads: int,
        latent_width: int | None = None,
        turned: int = 0,
        head_width: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        output_bias: bool | None = None,
        select: Selection | None = None,
    ) -> None:
        """`latent_width` is by default four times the width of a head."""
        super().__init__()
        if head_width is None and width % heads:
            raise UserError(f"width {width} is not a multiple of {heads} heads")
        self.head_width = width // heads if head_width is None else head_width
        self.latent_width = 4 * self.head_width if latent_width is None else latent_width
        self.turned = turned
        self.query = nn.Linear(width, heads * (turned + self.head_width), bias)
        self.latent = nn.Linear(width, turned + self.latent_width, bias)
        self.norm = nn.RMSNorm(self.latent_width, eps=1e-6)
        bound = self.latent_width**-0.5
        self.key, self.value = (
            nn.Parameter(torch.empty(heads, self.latent_width, self.head_width).uniform_(-bound, bound))
            for _ in range(2)
        )
        self.output = nn.Linear(heads * self.head_width, width, bias if output_bias is None else output_bias)
        self.score = ScaledDot((turned + self.head_width) ** -0.5)
        self.select = Soft() if select is None else select
        self.dropout = dropout

    def memory(self, source: Float[Tensor, "B S C"], expected: int = 0) -> LatentMemory:
        """What the places of a source keep, with room for `expected` of them. They do not turn."""
        key, latent = self._kept(source)
        return LatentMemory(torch.cat([key, latent], -1)[:, :, None], self.latent_width, self.score, expected)

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        source: Tensor | None = None,
        mask: Mask | Tensor | None = None,
        bias: Bias | Tensor | None = None,
        past: Memory | None = None,
        rotation: Turn | None = None,
        positions: Float[Tensor, "... T C"] | None = None,
    ) -> Float[Tensor, "B T C"]:
        """Attend from x to x, and to the `past`, to which x is added."""
        if source is not None or positions is not None:
            raise UserError("latent attention reads its own input alone, without added positions")
        queries = split_heads(self.query(x), self.turned + self.head_width)
        key, latent = self._kept(x)
        if rotation is not None:
            queries, key = rotation.turn(queries, key)
        dropout = self.dropout if self.training else 0.0
        look = partial(attend, mask=mask, bias=bias, select=self.select, dropout=dropout)
        if past is None:
            keys = torch.cat([key.expand(-1, queries.shape[1], -1, -1), latent @ self.key], -1)
            output = look(queries, keys, latent @ self.value, self.score)
        else:
            kept = torch.cat([key, latent], -1)[:, :, None]
            past.append(kept, kept[..., :0])
            turned, told = queries.split([self.turned, self.head_width], -1)
            queries = torch.cat([turned, told @ self.key.mT], -1)
            output = look(queries[:, None], past)[:, 0] @ self.value
        found: Tensor = self.output(output.transpose(1, 2).flatten(2))
        return found

    def _kept(self, x: Float[Tensor, "B T C"]) -> tuple[Float[Tensor, "B 1 T R"], Float[Tensor, "B 1 T L"]]:
        """The key that tells each place's position, and its latent vector."""
        key, latent = self.latent(x)[:, None].split([self.turned, self.latent_width], -1)
        return key, self.norm(latent)


def latent_layers(latent_width: int | None, turned: int) -> Callable[..., LatentAttention]:
    """Makes the layers of a stack: of what a stack says of attention, some parts have no meaning for them."""
    parts = ("head_width", "dropout", "bias", "output_bias", "select")

    def layer(width: int, heads: int, **of_attention: Any) -> LatentAttention:
        return LatentAttention(width, heads, latent_width, turned, **{name: of_attention[name] for name in parts})

    return layer
