"""A stack of self-attention blocks: what text encoders, language models and image models have in common."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Bias, Mask, Memory, window
from foveate.errors import UserError, check_literals
from foveate.nn.attention import MultiHeadAttention
from foveate.nn.blocks import ParallelBlock, TransformerBlock
from foveate.nn.dropout import Dropout
from foveate.nn.feedforward import FeedForward, GatedFeedForward
from foveate.nn.heads import HeadFields
from foveate.nn.norms import Norm, norm
from foveate.nn.positions import position_encoding
from foveate.nn.relative_attention import RelativeAttention
from foveate.nn.residual import Residual
from foveate.nn.rotary import Rotary, Rotation


@dataclass(kw_only=True)
class StackConfig(HeadFields):
    """The sizes and parts of a stack; a model's own config sets its defaults and adds what it reads and decides."""

    width: int = 512
    """Width C of all layers."""
    heads: int = 8
    """Attention heads of each layer."""
    key_value_heads: int | None = None
    """Heads of keys and values, each shared by equally many heads of queries; by default one for each."""
    head_width: int | None = None
    """Width of each head's queries, keys and values; by default width / heads."""
    feedforward: int = 2048
    """Inner width of the feed-forward layers."""
    layers: int = 6
    """Blocks of the stack."""
    norm: Literal["post", "pre"] = "post"
    """Norm after each residual sum (the paper), or before each layer (more stable)."""
    norm_kind: Literal["layer", "rms"] = "layer"
    """LayerNorm, or RMSNorm, which has no mean and no bias."""
    epsilon: float = 1e-5
    """Added to the variance in each norm."""
    input_norm: bool = False
    """Normalize the input, positions included (BERT)."""
    activation: Literal["relu", "gelu", "gelu-tanh", "gelu-sigmoid", "silu"] = "relu"
    """Activation function of the feed-forward layers."""
    gated: bool = False
    """A second linear layer gates each feed-forward layer (SwiGLU, with silu)."""
    bias: bool = True
    """Linear layers have biases."""
    parallel: bool = False
    """Attention and feed-forward layer of a block stand side by side, not one after the other (GPT-NeoX)."""
    positions: Literal["none", "sinusoidal", "learned", "relative", "relative-projected", "rotary"] = "sinusoidal"
    """Positions as waves of any length, as a learned table, as what each head adds to its scores for a distance, as
    distances that each layer projects (Transformer-XL), as rotations of queries and keys, or not at all."""
    position_join: Literal["add", "concatenate"] = "add"
    """Waves or table: added to the input, or put before it as [P, Z] and projected to the width."""
    max_length: int = 1024
    """Positions of the learned table."""
    position_offset: int | None = None
    """Rows of the learned table before that of the first position (RoBERTa: 2); by default none."""
    rotary_width: int | None = None
    """Rotary positions: how much of each head's width turns; by default all of it."""
    rotary_base: float = 10_000.0
    """Rotary positions: the frequencies fall from 1 to almost 1 / rotary_base."""
    window_every: int = 1
    """The window holds in every block (1), in every second one (2: alternating with dense ones, as in GPT-3), ..."""
    dropout: float = 0.1
    """Share of embeddings and layer outputs that is dropped in training."""
    attention_dropout: float = 0.0
    """Share of attention weights that is dropped in training."""
    activation_dropout: float | None = None
    """Share of what is inside the feed-forward layers that is dropped in training; by default that of dropout."""
    layer_scale: float | None = None
    """A learned scale for each channel of each layer's output, which begins with this value; by default none."""
    depth_dropout: float = 0.0
    """Share of the examples for which a layer is skipped in training (stochastic depth), the same for all layers."""


class TransformerStack(nn.Module):
    """Positions, then blocks of self-attention (Vaswani et al. 2017, figure 1), with or without a mask."""

    blocks: Iterable[TransformerBlock]

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        check_literals(config)
        if config.parallel and config.norm == "post":
            raise UserError("parallel attention and feed-forward layers need norm='pre'")
        if config.positions in ("rotary", "relative-projected") and config.head_widths is not None:
            raise UserError(f"positions {config.positions!r} need heads of equal width, without head_widths")
        if config.positions == "relative" and config.key_value_heads not in (None, config.heads):
            raise UserError("relative positions need as many key_value_heads as heads")
        self.window, self.window_every = config.window, config.window_every
        self.positions, self.distances = position_encoding(
            config.positions,
            config.width,
            config.heads,
            config.max_length,
            config.position_join,
            config.position_offset or 0,
        )
        concatenates = config.positions in ("sinusoidal", "learned") and config.position_join == "concatenate"
        self.project = nn.Linear(2 * config.width, config.width) if concatenates else None
        self.rotary = _rotary(config) if config.positions == "rotary" else None
        self.input_norm = _norm(config)(config.width) if config.input_norm else None
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(_block(config) for _ in range(config.layers))  # type: ignore[assignment]
        # Post-norm blocks end with a norm of their own.
        self.norm = _norm(config)(config.width) if config.norm == "pre" else nn.Identity()

    def forward(
        self,
        x: Float[Tensor, "B T C"],
        mask: Mask | Tensor | None = None,
        places: Int[Tensor, "P T"] | None = None,
        past: list[Memory] | None = None,
        biases: Sequence[Bias] = (),
        rotation: Rotation | None = None,
    ) -> Float[Tensor, "B T C"]:
        """Each vector in the light of those that `mask` lets it see.

        `past` are the blocks' keys and values of what came before x; those of x are added to them. `places` are the
        positions of x, by default those that follow the past; padding on the left shifts them. Masks, windows and
        relative positions count the columns of past and x, padding included. `biases` (one for each block) and a
        `rotation` are positions that the model knows, such as those in a grid, where the stack has none.
        """
        start = past[0].length if past else 0
        x = self.positions(x, start, places)
        x = x if self.project is None else self.project(x)
        x = self.dropout(x if self.input_norm is None else self.input_norm(x))
        bias = self.distances.with_start(start) if self.distances is not None and start else self.distances
        if self.rotary is not None:
            if places is None:
                places = torch.arange(start, start + x.shape[1], device=x.device)[None]
            rotation = self.rotary(places, x.dtype)
        near = mask
        if self.window is not None:
            near = window(self.window, start) if mask is None else window(self.window, start) & mask
        for number, block in enumerate(self.blocks):
            seen = near if (number + 1) % self.window_every == 0 else mask
            x = block(x, seen, biases[number] if biases else bias, past[number] if past else None, rotation)
        return self.norm(x)

    def memories(self, x: Float[Tensor, "B T C"], expected: int = 0) -> list[Memory]:
        """An empty past of rows like those of x, with room for `expected` positions."""
        return [block.self.memory(x[:, :0], expected) for block in self.blocks]


def _norm(config: StackConfig) -> Norm:
    return norm(config.norm_kind, config.epsilon)


def _rotary(config: StackConfig) -> Rotary:
    head_width = config.head_width or config.width // config.heads
    width = config.rotary_width or head_width
    if width > head_width:
        raise UserError(f"rotary_width is {width}, but a head has a width of {head_width} only")
    return Rotary(width, config.rotary_base)


def _block(config: StackConfig) -> TransformerBlock:
    kind = RelativeAttention if config.positions == "relative-projected" else MultiHeadAttention
    attention = kind(
        config.width,
        config.heads,
        head_width=config.head_width,
        dropout=config.attention_dropout,
        key_value_heads=config.key_value_heads,
        bias=config.bias,
        split=config.split,
        head_widths=config.head_widths,
    )
    dropout = config.dropout if config.activation_dropout is None else config.activation_dropout
    layer = GatedFeedForward if config.gated else FeedForward
    feedforward = layer(config.width, config.feedforward, config.activation, dropout, config.bias)
    around = _norm(config), config.layer_scale, config.depth_dropout
    residual = partial(Residual, config.width, config.norm, config.dropout, *around)
    return (ParallelBlock if config.parallel else TransformerBlock)(attention, feedforward, residual)
