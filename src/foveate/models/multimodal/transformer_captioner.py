"""Captions by a Transformer decoder over the places of an image: of a CNN, or the patches of a vision Transformer.

The decoder is that of Vaswani et al. 2017. An encoder on top of a CNN's places is optional (Sharma et al. 2018,
Conceptual Captions, https://aclanthology.org/P18-1238).
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import sinusoidal_grid
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import check_literals
from foveate.models.vision.image_encoder import Backbone, image_encoder
from foveate.nn import (
    DecoderStack,
    DecoderStackState,
    Dropout,
    HeadFields,
    StackConfig,
    TransformerStack,
    attention_layer,
    decoder_block,
    initialize,
    position_encoding,
    stack_heads,
    tie_output,
)
from foveate.nn.encoder_decoder import EncoderDecoder


@dataclass
class TransformerCaptionerConfig(HeadFields):
    """The sizes of a captioner with a Transformer decoder.

    The window is one of tokens: places of the image see each other.
    """

    vocabulary: FromData
    """Size of the vocabulary."""
    image_encoder: Backbone = "resnet101"
    """The vision preset whose feature map is described."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    image_size: int = 224
    """Height and width of the images, for image encoders that learn positions."""
    image_positions: Literal["none", "sinusoidal"] = "sinusoidal"
    """Add waves of row and column to each place; "none" for image encoders that have positions, such as ViT."""
    width: int = 512
    """Width C of all layers."""
    heads: int = 8
    """Attention heads of each layer."""
    feedforward: int = 2048
    """Inner width of the feed-forward layers."""
    encoder_layers: int | None = None
    """Blocks of self-attention between the places; None: the decoder attends to the feature map itself."""
    decoder_layers: int = 6
    """Blocks of the decoder."""
    norm: Literal["post", "pre"] = "pre"
    """Layer norm after each residual connection, or before each layer (more stable)."""
    activation: Literal["relu", "gelu", "silu"] = "relu"
    """Activation function of the feed-forward layers."""
    dropout: float = 0.1
    """Share of embeddings and layer outputs that is dropped in training."""
    attention_dropout: float = 0.0
    """Share of attention weights that is dropped in training."""
    activation_dropout: float = 0.0
    """Share of the inner activations of feed-forward layers that is dropped in training."""
    positions: Literal["sinusoidal", "learned", "relative"] = "sinusoidal"
    """Positions of tokens as sine waves of any length, as a learned table, or as a bias for each head and distance."""
    max_length: int = 256
    """Rows of the learned table."""


class TransformerCaptioner(EncoderDecoder, nn.Module):
    """Encodes an image and writes its caption from left to right."""

    image_encoder: Any
    """A `foveate.contracts.GridEncoder`."""

    def __init__(self, config: TransformerCaptionerConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.positions, self.distances = position_encoding(
            config.positions, config.width, config.heads, config.max_length
        )
        self.dropout = Dropout(config.dropout)
        self.encoder = _encoder(config) if config.encoder_layers else None
        attention = partial(attention_layer, config, config.attention_dropout)
        blocks = (decoder_block(config, partial(attention, number)) for number in range(config.decoder_layers))
        self.decoder = DecoderStack(blocks, config.window)
        # Post-norm blocks end with a norm already.
        self.decoder_norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        self.output = nn.Linear(config.width, config.vocabulary, bias=False)
        initialize(self, config.width)
        tie_output(self.output, self.embedding)
        self.image_encoder = image_encoder(config.image_encoder, config.channels, config.image_size, config.dropout)
        self.project = nn.Linear(self.image_encoder.grid_width, config.width)

    def forward(
        self,
        pixels: Float[Tensor, "B c h w"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, "B"] | None = None,
    ) -> Output:
        """Logits of the token after each target token. Padding after the end of a target has no effect before it."""
        x = self.decoder(self._embed(target), self.encode(pixels), distances=self.distances)
        return Output(self.output(self.decoder_norm(x)))

    def encode(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B S C"]:
        """The encoded places, row by row."""
        grid = self.image_encoder.grid(pixels)
        rows, columns = grid.shape[2:]
        x = self.project(grid.flatten(2).mT)
        if self.config.image_positions == "sinusoidal":
            x = x + sinusoidal_grid(rows, columns, x.shape[-1], device=x.device).to(x.dtype)
        return self.dropout(x) if self.encoder is None else self.encoder(x)

    def start(self, pixels: Float[Tensor, "B c h w"]) -> DecoderStackState:
        places = self.encode(pixels)
        lengths = torch.full((len(places),), places.shape[1], device=places.device)
        return self.decoder.start(places, lengths, USUAL_LENGTH)

    def step(self, tokens: Int[Tensor, "R"], state: DecoderStackState) -> Float[Tensor, "R N"]:
        x = self.decoder.step(self._embed(tokens[:, None], state.steps), state, self.distances)
        return self.output(self.decoder_norm(x)).squeeze(1)

    def _embed(self, tokens: Int[Tensor, "B T"], start: int = 0) -> Float[Tensor, "B T C"]:
        return self.dropout(self.positions(self.embedding(tokens) * math.sqrt(self.config.width), start))


USUAL_LENGTH = 24
"""Few captions have more tokens."""


def _encoder(config: TransformerCaptionerConfig) -> TransformerStack:
    sizes = {name: getattr(config, name) for name in ("width", "feedforward", "norm", "activation", "dropout")}
    layers = config.encoder_layers or 0
    return TransformerStack(StackConfig(**sizes, **stack_heads(config), layers=layers, positions="none"))


MODEL, CONFIG = TransformerCaptioner, TransformerCaptionerConfig

TINY = {"image_size": 64, "width": 128, "heads": 4, "feedforward": 256, "decoder_layers": 2}

PRESETS: dict[str, dict[str, Any]] = {
    "captioner-transformer": {"encoder_layers": 6},
    "captioner-transformer-tiny": {**TINY, "image_encoder": "resnet-light", "encoder_layers": 1},
    "vit-captioner": {
        "image_encoder": "vit-base-16",
        "image_positions": "none",
        "width": 768,
        "heads": 12,
        "feedforward": 3072,
    },
    "vit-captioner-tiny": {**TINY, "image_encoder": "vit-light", "image_positions": "none", "dropout": 0.0},
}
