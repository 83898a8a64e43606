"""The Transformer, encoder and decoder (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762)."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Mask, Memory, RelativePosition, padding, window
from foveate.attention.positions import Waves
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import check_literals
from foveate.nn import (
    DecoderStack,
    DecoderStackState,
    Dropout,
    FeedForward,
    HeadFields,
    MultiHeadAttention,
    Residual,
    TransformerBlock,
    attention_layer,
    decoder_block,
    initialize,
    position_encoding,
    tie_output,
    word_embeddings,
)
from foveate.nn.encoder_decoder import EncoderDecoder
from foveate.nn.heads import check_positions
from foveate.nn.positions import Positioned, Unpositioned, are_concatenated
from foveate.nn.rotary import Rotary, Rotation


@dataclass
class TransformerConfig(HeadFields):
    """The sizes of a Transformer, and its variants."""

    src_vocab: FromData
    """Size of the source vocabulary."""
    tgt_vocab: FromData
    """Size of the target vocabulary."""
    width: int = 512
    """Width C of all layers."""
    heads: int = 8
    """Attention heads of each layer."""
    feedforward: int = 2048
    """Inner width of the feed-forward layers."""
    encoder_layers: int = 6
    """Blocks of the encoder."""
    decoder_layers: int = 6
    """Blocks of the decoder."""
    norm: Literal["post", "pre"] = "post"
    """Layer norm after each residual connection (as in the paper), or before each layer (more stable)."""
    input_norm: bool = False
    """Normalize the embeddings, positions included (BART)."""
    activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "relu"
    """Activation function of the feed-forward layers."""
    dropout: float = 0.1
    """Share of embeddings and layer outputs that is dropped in training."""
    attention_dropout: float = 0.0
    """Share of attention weights that is dropped in training."""
    activation_dropout: float = 0.0
    """Share of the inner activations of feed-forward layers that is dropped in training."""
    positions: Literal["sinusoidal", "learned", "relative", "rotary", "none"] = "sinusoidal"
    """Positions as sine waves of any length, as a learned table, as a learned bias for each head and distance, as
    rotations of queries and keys in self-attention, or not at all."""
    position_join: Literal["add", "concatenate"] = "add"
    """Waves or table: added to the embeddings, or put before them as [P, Z] and projected to the width."""
    waves: Waves = "interleaved"
    """Sinusoidal positions: sines and cosines in turn (as in the paper), in halves, sines first (Marian), or in halves
    as in tensor2tensor (M2M-100)."""
    position_offset: int | None = None
    """Rows of the learned table, or positions of the waves, before the first position (BART: 2); by default none."""
    max_length: int = 1024
    """Rows of the learned table."""
    scale_embedding: bool = True
    """Multiply embeddings by the root of the width, as in the paper."""
    tie: Literal["none", "output", "all"] = "output"
    """Share the target embedding with the output layer, or also with the source embedding (one vocabulary)."""
    logit_bias: bool = False
    """Add a number to the logit of each target token, which is not trained (Marian)."""


class Transformer(EncoderDecoder, nn.Module):
    """Encodes the source and decodes the target from left to right."""

    logit_bias: Tensor | None

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        check_literals(config)
        check_positions(config.positions, config)
        self.config = config
        self.source_embedding, self.target_embedding = word_embeddings(
            config.src_vocab, config.tgt_vocab, config.width, shared=config.tie == "all"
        )
        self.source_positions, self.source_distances = _positions(config)
        self.target_positions, self.target_distances = _positions(config)
        concatenated = are_concatenated(config.positions, config.position_join)
        joined = partial(nn.Linear, 2 * config.width, config.width) if concatenated else nn.Identity
        self.source_join, self.target_join = joined(), joined()
        self.rotary = Rotary(config.width // config.heads) if config.positions == "rotary" else None
        input_norm = nn.LayerNorm if config.input_norm else nn.Identity
        self.source_norm, self.target_norm = input_norm(config.width), input_norm(config.width)
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(_encoder_block(config, number) for number in range(config.encoder_layers))
        layers = (partial(_attention, config, number) for number in range(config.decoder_layers))
        self.decoder = DecoderStack((decoder_block(config, layer) for layer in layers), config.window)
        # Post-norm blocks end with a norm already.
        last_norm = nn.LayerNorm if config.norm == "pre" else nn.Identity
        self.encoder_norm, self.decoder_norm = last_norm(config.width), last_norm(config.width)
        self.output = nn.Linear(config.width, config.tgt_vocab, bias=False)
        self.register_buffer("logit_bias", torch.zeros(config.tgt_vocab) if config.logit_bias else None)
        initialize(self, config.width)
        if config.tie != "none":
            tie_output(self.output, self.target_embedding)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, "B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, "B"] | None = None,
    ) -> Output:
        """Logits of the token after each target token. Padding after the end of a target has no effect before it."""
        source_mask = padding(source_lengths)
        return self.decode(target, self.encode(source, source_mask), source_mask)

    def decode(
        self,
        target: Int[Tensor, "B T"],
        encoded: Float[Tensor, "B S C"],
        source_mask: Mask,
        past: list[Memory] | None = None,
    ) -> Output:
        """Logits of the token after each target token, of a source that was encoded; `past` gets its keys and
        values."""
        x, rotation = self._embed_target(target), self._rotation(target.shape[1], encoded)
        x = self.decoder(x, encoded, source_mask, self.target_distances, past, rotation)
        return Output(self._logits(x))

    def encode(self, source: Int[Tensor, "B S"], mask: Mask) -> Float[Tensor, "B S C"]:
        """The output of the encoder."""
        x = self.source_join(self.source_positions(self.source_embedding(source) * self._scale))
        x = self.dropout(self.source_norm(x))
        near = mask if self.config.window is None else mask & window(self.config.window)
        rotation = self._rotation(source.shape[1], x)
        for block in self.encoder:
            x = block(x, mask=near, bias=self.source_distances, rotation=rotation)
        return self.encoder_norm(x)

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, "B"]) -> DecoderStackState:
        encoded = self.encode(source, padding(source_lengths))
        expected = source.shape[1] + source.shape[1] // 4 + 4  # few translations are longer
        return self.decoder.start(encoded, source_lengths, expected)

    def step(self, tokens: Int[Tensor, "R"], state: DecoderStackState) -> Float[Tensor, "R N"]:
        x = self._embed_target(tokens[:, None], state.steps)
        rotation = self._rotation(1, x, state.steps)
        return self._logits(self.decoder.step(x, state, self.target_distances, rotation)).squeeze(1)

    @property
    def _scale(self) -> float:
        return math.sqrt(self.config.width) if self.config.scale_embedding else 1.0

    def _embed_target(self, tokens: Int[Tensor, "R T"], start: int = 0) -> Float[Tensor, "R T C"]:
        x = self.target_join(self.target_positions(self.target_embedding(tokens) * self._scale, start))
        return self.dropout(self.target_norm(x))

    def _rotation(self, length: int, like: Tensor, start: int = 0) -> Rotation | None:
        """That of so many positions from `start` on, where positions are rotary."""
        if self.rotary is None:
            return None
        return self.rotary(torch.arange(start, start + length, device=like.device)[None], like.dtype)

    def _logits(self, x: Float[Tensor, "R T C"]) -> Float[Tensor, "R T N"]:
        logits = self.output(self.decoder_norm(x))
        return logits if self.logit_bias is None else logits + self.logit_bias


def _positions(config: TransformerConfig) -> tuple[Positioned | Unpositioned, RelativePosition | None]:
    return position_encoding(
        config.positions,
        config.width,
        config.heads,
        config.max_length,
        config.position_join,
        offset=config.position_offset or 0,
        waves=config.waves,
    )


def _attention(config: TransformerConfig, number: int, to_source: bool = False) -> MultiHeadAttention:
    return attention_layer(config, config.attention_dropout, number, to_source)


def _feedforward(config: TransformerConfig) -> FeedForward:
    return FeedForward(config.width, config.feedforward, config.activation, config.activation_dropout)


def _encoder_block(config: TransformerConfig, number: int) -> TransformerBlock:
    return TransformerBlock(_attention(config, number), _feedforward(config), partial(_residual, config))


def _residual(config: TransformerConfig) -> Residual:
    return Residual(config.width, config.norm, config.dropout)


MODEL, CONFIG = Transformer, TransformerConfig

TRAINED = {"learning_rate": 3e-3}
"""On 29,000 pairs, 600 steps give 35 BLEU, and 19 with a learning rate of 0.001 (docs/log/translation.md)."""

PRESETS: dict[str, dict[str, Any]] = {
    "transformer-tiny": {
        "width": 128,
        "heads": 4,
        "feedforward": 256,
        "encoder_layers": 4,
        "decoder_layers": 4,
        "norm": "pre",
        "dropout": 0.3,
    },
    "speaker-tiny": {
        "width": 96,
        "heads": 4,
        "feedforward": 256,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "norm": "pre",
        "dropout": 0.0,
    },
    "transformer-base": {"tie": "all"},
    "transformer-large": {"width": 1024, "heads": 16, "feedforward": 4096, "dropout": 0.3, "tie": "all"},
}

TRAINING = {
    "transformer-tiny": TRAINED,
}
"""The settings of training that suit a preset, where they differ from its task's."""

SIZES: dict[str, dict[str, int]] = {
    **{name: {"src_vocab": 37_000, "tgt_vocab": 37_000} for name in ("transformer-base", "transformer-large")},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
