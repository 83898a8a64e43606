"""The encoder of a Transformer."""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import padding
from foveate.errors import check_literals
from foveate.nn.attention import MultiHeadAttention
from foveate.nn.blocks import EncoderBlock
from foveate.nn.dropout import Dropout
from foveate.nn.feedforward import FeedForward
from foveate.nn.positions import position_encoding


@dataclass(kw_only=True)
class EncoderConfig:
    """The sizes of an encoder. The config of a model adds its vocabulary and its outputs."""

    width: int = 512
    """Width C of all layers."""
    heads: int = 8
    """Attention heads of each layer."""
    feedforward: int = 2048
    """Inner width of the feed-forward layers."""
    layers: int = 6
    """Blocks of the encoder."""
    norm: Literal["post", "pre"] = "post"
    """Layer norm after each residual connection (as in the paper), or before each layer (more stable)."""
    activation: Literal["relu", "gelu", "silu"] = "relu"
    """Activation function of the feed-forward layers."""
    dropout: float = 0.1
    """Share of embeddings and layer outputs that is dropped in training."""
    attention_dropout: float = 0.0
    """Share of attention weights that is dropped in training."""
    positions: Literal["sinusoidal", "learned", "relative"] = "sinusoidal"
    """Positions as sine waves of any length, as a learned table, or as a learned bias for each head and distance."""
    max_length: int = 1024
    """Rows of the learned table."""


class TransformerEncoder(nn.Module):
    """Positions and blocks of self-attention (Vaswani et al. 2017, the left half of figure 1)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        check_literals(config)
        self.positions, self.distances = position_encoding(
            config.positions, config.width, config.heads, config.max_length
        )
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(_block(config) for _ in range(config.layers))
        # Post-norm blocks end with a norm already.
        self.norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()

    def forward(self, embedded: Float[Tensor, "B T C"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "B T C"]:
        """`embedded` are token vectors, `lengths` the number of tokens in each row."""
        mask, x = padding(lengths), self.dropout(self.positions(embedded))
        for block in self.blocks:
            x = block(x, mask=mask, bias=self.distances)
        return self.norm(x)


def _block(config: EncoderConfig) -> EncoderBlock:
    attention = MultiHeadAttention(config.width, config.heads, dropout=config.attention_dropout)
    feedforward = FeedForward(config.width, config.feedforward, config.activation, config.dropout)
    return EncoderBlock(attention, feedforward, config.norm, config.dropout)
