"""Transformer blocks: attention and feed-forward layers, each with a residual connection and a layer norm."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Bias, Mask, Memory
from foveate.errors import one_of
from foveate.nn.attention import MultiHeadAttention
from foveate.nn.beam_sources import BeamSources
from foveate.nn.dropout import Dropout, StochasticDepth
from foveate.nn.feedforward import FeedForward


class Residual(nn.Module):
    """`norm(x + f(x))` (post-norm, Vaswani et al. 2017) or `x + f(norm(x))` (pre-norm, Xiong et al. 2020).

    The output of f passes dropout, a learned scale of each channel that starts at `layer_scale` (LayerScale, Touvron et
    al. 2021, https://arxiv.org/abs/2103.17239), and stochastic depth. `epsilon` is added to the variance in the norm.
    """

    def __init__(
        self,
        width: int,
        norm: str,
        dropout: float,
        epsilon: float = 1e-5,
        layer_scale: float | None = None,
        depth_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        one_of("norm", norm, ("post", "pre"))
        self.norm = nn.LayerNorm(width, epsilon)
        self.norm_first = norm == "pre"
        self.dropout = Dropout(dropout)
        self.scale = None if layer_scale is None else nn.Parameter(torch.full((width,), layer_scale))
        self.depth = StochasticDepth(depth_dropout)

    def forward(self, x: Float[Tensor, "B T C"], layer: Callable[[Tensor], Tensor]) -> Float[Tensor, "B T C"]:
        y = self.dropout(layer(self.norm(x) if self.norm_first else x))
        y = x + self.depth(y if self.scale is None else self.scale * y)
        return y if self.norm_first else self.norm(y)


class EncoderBlock(nn.Module):
    """Self-attention, then a feed-forward layer. The other arguments are those of both residual connections."""

    def __init__(
        self,
        attention: MultiHeadAttention,
        feedforward: FeedForward,
        norm: str,
        dropout: float,
        epsilon: float = 1e-5,
        layer_scale: float | None = None,
        depth_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        width = feedforward.inner.in_features
        self.self = attention
        self.feedforward = feedforward
        self.around_self = Residual(width, norm, dropout, epsilon, layer_scale, depth_dropout)
        self.around_feedforward = Residual(width, norm, dropout, epsilon, layer_scale, depth_dropout)

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        mask: Mask | Tensor | None = None,
        bias: Bias | None = None,
        past: Memory | None = None,
    ) -> Float[Tensor, "B T C"]:
        """`past` is the block's own memory of the positions before x; those of x are appended to it."""
        x = self.around_self(x, lambda y: self.self(y, mask=mask, bias=bias, past=past))
        return self.around_feedforward(x, self.feedforward)


class DecoderBlock(nn.Module):
    """Masked self-attention, attention to the encoded source, then a feed-forward layer."""

    def __init__(
        self,
        attention: MultiHeadAttention,
        cross: MultiHeadAttention,
        feedforward: FeedForward,
        norm: str,
        dropout: float,
    ) -> None:
        super().__init__()
        width = feedforward.inner.in_features
        self.self = attention
        self.cross = cross
        self.feedforward = feedforward
        self.around_self = Residual(width, norm, dropout)
        self.around_cross = Residual(width, norm, dropout)
        self.around_feedforward = Residual(width, norm, dropout)

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        source: Tensor | Memory,
        mask: Mask | None = None,
        source_mask: Mask | None = None,
        past: Memory | None = None,
        bias: Bias | None = None,
        beams: BeamSources | None = None,
    ) -> Float[Tensor, "B T C"]:
        """`mask` and `bias` are for self-attention, `source_mask` for attention to the source.

        `past` is the memory of the tokens so far; those of x are appended. With `beams`, several rows of x share a row
        of the source.
        """
        x = self.around_self(x, lambda y: self.self(y, mask=mask, bias=bias, past=past))
        x = self.around_cross(x, lambda y: self.cross(y, source, mask=source_mask, beams=beams))
        return self.around_feedforward(x, self.feedforward)
