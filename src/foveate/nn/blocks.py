"""Transformer blocks: attention and feed-forward layers, each with a residual connection and a layer norm."""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Bias, Mask, Memory
from foveate.nn.attention import MultiHeadAttention
from foveate.nn.feedforward import FeedForward
from foveate.nn.latent_attention import LatentAttention
from foveate.nn.residual import Residual
from foveate.nn.rotary import Turn
from foveate.nn.running import Running, RunningLayer

SelfAttention = MultiHeadAttention | LatentAttention | RunningLayer
"""What a block has that looks at the places of its own input."""

Residuals = Callable[[], Residual]
"""Makes the residual connection of one layer of a block."""


class TransformerBlock(nn.Module):
    """Self-attention, then a feed-forward layer."""

    def __init__(self, attention: SelfAttention, feedforward: FeedForward, residual: Residuals) -> None:
        super().__init__()
        self.self = attention
        self.feedforward = feedforward
        self.around_self = residual()
        self.around_feedforward = residual()

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        mask: Mask | Tensor | None = None,
        bias: Bias | None = None,
        past: Memory | Running | None = None,
        rotation: Turn | None = None,
        positions: Float[Tensor, "... T C"] | None = None,
    ) -> Float[Tensor, "B T C"]:
        """`past` is the memory of the tokens so far; those of x are appended. `positions` of x are added to queries and
        keys, not to values."""
        attention = partial(self.self, mask=mask, bias=bias, past=past, rotation=rotation, positions=positions)
        x = self.around_self(x, attention)
        return self.around_feedforward(x, self.feedforward)


class ParallelBlock(TransformerBlock):
    """Self-attention and a feed-forward layer in parallel: `x + self(norm(x)) + feedforward(norm(x))`.

    With two norms (Black et al. 2022, GPT-NeoX-20B, https://arxiv.org/abs/2204.06745), or with `one_norm` for both
    (Wang and Komatsuzaki 2021, GPT-J).
    """

    def __init__(
        self,
        attention: SelfAttention,
        feedforward: FeedForward,
        residual: Residuals,
        one_norm: bool = False,
    ) -> None:
        super().__init__(attention, feedforward, residual)
        self.norm = self.around_self.norm if one_norm else None
        if one_norm:
            self.around_self.norm, self.around_feedforward.norm = nn.Identity(), nn.Identity()

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        mask: Mask | Tensor | None = None,
        bias: Bias | None = None,
        past: Memory | Running | None = None,
        rotation: Turn | None = None,
        positions: Float[Tensor, "... T C"] | None = None,
    ) -> Float[Tensor, "B T C"]:
        attention = partial(self.self, mask=mask, bias=bias, past=past, rotation=rotation, positions=positions)
        normal = x if self.norm is None else self.norm(x)
        attended = self.around_self.branch(normal, attention)
        return x + attended + self.around_feedforward.branch(normal, self.feedforward)


class DecoderBlock(nn.Module):
    """Masked self-attention, attention to the encoded source, then a feed-forward layer."""

    def __init__(
        self,
        attention: MultiHeadAttention,
        cross: MultiHeadAttention,
        feedforward: FeedForward,
        residual: Residuals,
    ) -> None:
        super().__init__()
        self.self = attention
        self.cross = cross
        self.feedforward = feedforward
        self.around_self = residual()
        self.around_cross = residual()
        self.around_feedforward = residual()

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        source: Tensor | Memory,
        mask: Mask | Tensor | None = None,
        source_mask: Mask | Tensor | None = None,
        past: Memory | None = None,
        bias: Bias | None = None,
        rotation: Turn | None = None,
        positions: Float[Tensor, "... T C"] | None = None,
        source_positions: Float[Tensor, "... S C"] | None = None,
    ) -> Float[Tensor, "B T C"]:
        """`mask`, `bias` and `rotation` are for self-attention, `source_mask` for attention to the source.

        `past` is the memory of the tokens so far; those of x are appended. `positions` of x and of the source
        are added to queries and keys, not to values.
        """
        own = partial(self.self, mask=mask, bias=bias, past=past, rotation=rotation, positions=positions)
        x = self.around_self(x, own)
        cross = partial(self.cross, source=source, mask=source_mask)
        x = self.around_cross(x, partial(cross, positions=positions, source_positions=source_positions))
        return self.around_feedforward(x, self.feedforward)
