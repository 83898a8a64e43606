"""A Transformer decoder that writes about an image, which a vision Transformer or a Swin has encoded.

TrOCR      a ViT or DeiT, and a decoder with norms after its layers, for lines of text (Li et al. 2023,
           https://arxiv.org/abs/2109.10282)
Donut      a Swin without its last norm, and the decoder of BART with norms before its layers, for documents (Kim et
           al. 2022, https://arxiv.org/abs/2111.15664)
ViT-GPT2   a ViT, and GPT-2 with attention to the image
BLIP       a ViT, and BERT with attention to the image (Li et al. 2022, https://arxiv.org/abs/2201.12086)
"""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal

import torch
import tyro
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate import models
from foveate.attention import sinusoidal_grid
from foveate.attention.positions import Waves
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError, check_literals
from foveate.models.vision.image_encoder import ImageBody, image_encoder
from foveate.models.vision.swin import SwinConfig
from foveate.models.vision.vit import ViT, ViTConfig
from foveate.nn import (
    DecoderBlock,
    DecoderStack,
    DecoderStackState,
    Dropout,
    FeedForward,
    MultiHeadAttention,
    Residual,
    initialize_language_model,
    position_encoding,
    tie_output,
    without_memory,
)
from foveate.nn.encoder_decoder import EncoderDecoder
from foveate.nn.feedforward import ACTIVATIONS
from foveate.nn.norms import norm

Vision = ViTConfig | SwinConfig | ImageBody
"""A body is one of another family, whose places get positions."""


WITH_CONFIG: dict[str, dict[str, Any]] = {"vit": {"head": "none"}, "swin": {}}
"""The families whose configs stand for themselves, as the weights of others have them, and what they are without a
classifier."""


@dataclass(kw_only=True)
class VisionEncoderDecoderConfig:
    """The sizes of both parts. Defaults of the decoder are those of GPT-2."""

    vocabulary: FromData
    """Size of the vocabulary."""
    vision: Annotated[Vision, tyro.conf.Suppress] = field(default_factory=lambda: ViTConfig(classes=1, head="none"))
    """The model that encodes images, without a head."""
    connector: bool = False
    """A linear layer makes encoded places as wide as the decoder; else its attention reads them in their own width."""
    width: int = 768
    """Width C of the decoder."""
    heads: int = 12
    """Attention heads of each layer of the decoder."""
    feedforward: int = 3072
    """Inner width of its feed-forward layers."""
    decoder_layers: int = 12
    """Blocks of the decoder."""
    norm: Literal["post", "pre"] = "pre"
    """Layer norm after each residual connection, or before each layer."""
    input_norm: bool = False
    """Normalize the embeddings, positions included (BART, BERT)."""
    activation: Literal["relu", "gelu", "gelu-tanh", "silu"] = "gelu-tanh"
    """Activation function of the feed-forward layers, and of the layer before the logits."""
    positions: Literal["learned", "sinusoidal"] = "learned"
    """Positions of tokens as a learned table, or as waves of any length."""
    waves: Waves = "interleaved"
    """Sinusoidal positions: sines and cosines in turn, in halves, or in halves as in tensor2tensor."""
    position_offset: int | None = None
    """Rows of the learned table, or positions of the waves, before the first position (BART: 2); by default none."""
    token_type: bool = False
    """Add one more learned vector to all tokens (BERT)."""
    max_length: int = 1024
    """Positions of the learned table."""
    scale_embedding: bool = False
    """Multiply embeddings by the root of the width."""
    word_layer: bool = False
    """A layer with an activation and a norm comes before the logits, which have a bias (BERT)."""
    tie: bool = True
    """Use the embeddings as the weights of the output layer too."""
    epsilon: float = 1e-5
    """What layer norms of the decoder add to the variance."""
    dropout: float = 0.1
    """Share of embeddings and layer outputs of the decoder that is dropped in training."""
    attention_dropout: float = 0.0
    """Share of its attention weights that is dropped in training."""
    activation_dropout: float = 0.0
    """Share of the inner activations of its feed-forward layers that is dropped in training."""

    def __post_init__(self) -> None:
        if isinstance(self.vision, ImageBody) and self.vision.family in WITH_CONFIG:
            self.vision = replace(self.vision.config, **WITH_CONFIG[self.vision.family])


class VisionEncoderDecoder(EncoderDecoder, nn.Module):
    """Encodes an image and writes a text from left to right."""

    def __init__(self, config: VisionEncoderDecoderConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config, width = config, config.width
        self.embedding = nn.Embedding(config.vocabulary, width)
        offset = config.position_offset or 0
        self.positions, _ = position_encoding(
            config.positions, width, config.heads, config.max_length, offset=offset, waves=config.waves
        )
        self.token_type = nn.Parameter(torch.empty(1, width)) if config.token_type else None
        make_norm = norm("layer", config.epsilon)
        self.input_norm = make_norm(width) if config.input_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)
        # A body is made first, because only it knows its width.
        body: Any = _image_encoder(config.vision) if isinstance(config.vision, ImageBody) else None
        source = body.grid_width if isinstance(config.vision, ImageBody) else places_width(config.vision)
        self.decoder = DecoderStack(_block(config, source) for _ in range(config.decoder_layers))
        # Post-norm blocks end with a norm already.
        self.decoder_norm = make_norm(width) if config.norm == "pre" else nn.Identity()
        self.word_layer = WordLayer(config) if config.word_layer else nn.Identity()
        self.output = nn.Linear(width, config.vocabulary, bias=config.word_layer)
        self.connector = nn.Linear(source, width) if config.connector else nn.Identity()
        initialize_language_model(self, config.decoder_layers)
        if self.token_type is not None:
            nn.init.normal_(self.token_type, std=0.02)
        if config.tie:
            tie_output(self.output, self.embedding)
        self.image_encoder: Any = _image_encoder(config.vision) if body is None else body

    def forward(
        self,
        pixels: Float[Tensor, "B c h w"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, "B"] | None = None,
    ) -> Output:
        """Logits of the token after each target token. Padding after the end of a target has no effect before it."""
        return Output(self._logits(self.decoder(self._embed(target), self.encode(pixels))))

    def encode(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B S E"]:
        """The encoded places, row by row, behind the class tokens of the image encoder."""
        encoder = self.image_encoder
        if isinstance(encoder, ViT):
            return self.connector(encoder.encode(pixels))
        grid = encoder.grid(pixels)
        x = self.connector(grid.flatten(2).mT)
        if isinstance(self.config.vision, ImageBody):
            x = x + sinusoidal_grid(grid.shape[2], grid.shape[3], x.shape[-1], device=x.device).to(x.dtype)
        return x

    def start(self, pixels: Float[Tensor, "B c h w"]) -> DecoderStackState:
        places = self.encode(pixels)
        lengths = torch.full((len(places),), places.shape[1], device=places.device)
        return self.decoder.start(places, lengths, USUAL_LENGTH, self.config.width)

    def step(self, tokens: Int[Tensor, "R"], state: DecoderStackState) -> Float[Tensor, "R N"]:
        return self._logits(self.decoder.step(self._embed(tokens[:, None], state.steps), state)).squeeze(1)

    @property
    def tokens(self) -> int:
        """How many tokens of an image are before its places."""
        found: int = getattr(self.image_encoder, "tokens", 0)
        return found

    def grid_size(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of the places of images of this size."""
        rows, columns = (-(-side // self.image_encoder.stride) for side in (height, width))
        return rows, columns

    def _embed(self, tokens: Int[Tensor, "B T"], start: int = 0) -> Float[Tensor, "B T C"]:
        x = self.embedding(tokens)
        x = x * math.sqrt(self.config.width) if self.config.scale_embedding else x
        x = x if self.token_type is None else x + self.token_type
        return self.dropout(self.input_norm(self.positions(x, start)))

    def _logits(self, x: Float[Tensor, "R T C"]) -> Float[Tensor, "R T N"]:
        return self.output(self.word_layer(self.decoder_norm(x)))


USUAL_LENGTH = 32
"""Most texts about images have fewer tokens."""


class WordLayer(nn.Module):
    """What BERT has before the logits of words: a layer with an activation, and a norm."""

    def __init__(self, config: VisionEncoderDecoderConfig) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[config.activation]
        self.inner = nn.Linear(config.width, config.width)
        self.norm = nn.LayerNorm(config.width, config.epsilon)

    def forward(self, x: Float[Tensor, "*places C"]) -> Float[Tensor, "*places C"]:
        return self.norm(self.activation(self.inner(x)))


def places_width(vision: Vision) -> int:
    """The width of the places that an image encoder gives."""
    if isinstance(vision, ImageBody):
        with without_memory():
            encoder: Any = _image_encoder(vision)
        return int(encoder.grid_width)
    return vision.width if isinstance(vision, ViTConfig) else vision.width * 2 ** (len(vision.blocks) - 1)


def _image_encoder(config: Vision) -> nn.Module:
    """The model without its classifier."""
    if isinstance(config, ImageBody):
        return image_encoder(config, config.config.channels, 0)
    if isinstance(config, ViTConfig):
        if config.head != "none":
            raise UserError("a vision Transformer that encodes images for a decoder has the head 'none'")
        return models.build("vit", config)
    encoder = models.build("swin", config)
    del encoder.output
    return encoder


def _block(config: VisionEncoderDecoderConfig, places: int) -> DecoderBlock:
    source = None if config.connector else places
    attention = partial(MultiHeadAttention, config.width, config.heads, dropout=config.attention_dropout)
    return DecoderBlock(
        attention(),
        attention(source_width=source),
        FeedForward(config.width, config.feedforward, config.activation, config.activation_dropout),
        partial(Residual, config.width, config.norm, config.dropout, norm("layer", config.epsilon)),
    )


MODEL, CONFIG = VisionEncoderDecoder, VisionEncoderDecoderConfig


def _vit(**sizes: Any) -> ViTConfig:
    return ViTConfig(classes=1, head="none", **sizes)


_TROCR = {"norm": "post", "input_norm": True, "activation": "gelu", "position_offset": 2, "max_length": 512}

_TINY_VIT = {"image_size": 64, "patch": 8, "width": 128, "heads": 4, "feedforward": 512, "layers": 6}

PRESETS: dict[str, dict[str, Any]] = {
    "trocr-tiny": {
        **_TROCR,
        "vision": _vit(**_TINY_VIT),
        "width": 128,
        "heads": 4,
        "feedforward": 512,
        "decoder_layers": 3,
    },
    "trocr-base": {
        **_TROCR,
        "vision": _vit(image_size=384, epsilon=1e-12, key_bias=False, query_value_bias=False),
        "width": 1024,
        "heads": 16,
        "feedforward": 4096,
    },
    "vit-gpt2": {"vision": _vit(epsilon=1e-12)},
    "donut-base": {
        "vision": SwinConfig(classes=1, width=128, blocks=(2, 2, 14, 2), window=10, last_norm=False),
        "width": 1024,
        "heads": 16,
        "feedforward": 4096,
        "decoder_layers": 4,
        "input_norm": True,
        "activation": "gelu",
        "position_offset": 2,
        "max_length": 1536,
        "scale_embedding": True,
    },
    "blip-base": {
        "vision": _vit(image_size=384, epsilon=1e-5),
        "norm": "post",
        "input_norm": True,
        "activation": "gelu",
        "max_length": 512,
        "word_layer": True,
        "epsilon": 1e-12,
    },
}

SIZES: dict[str, dict[str, int]] = {
    "trocr-base": {"vocabulary": 50_265},
    "vit-gpt2": {"vocabulary": 50_257},
    "donut-base": {"vocabulary": 57_525},
    "blip-base": {"vocabulary": 30_524},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
