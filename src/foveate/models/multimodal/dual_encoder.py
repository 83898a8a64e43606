"""Images and texts as vectors of two Transformers: CLIP (Radford et al. 2021) and SigLIP (Zhai et al. 2023).

https://arxiv.org/abs/2103.00020 and https://arxiv.org/abs/2303.15343. CLIP compares class token and end token, each
projected. SigLIP compares the result of attention to all patches with the last token of a padded text, and decides each
pair by itself: its logits have a bias.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import causal, padding
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import check_literals
from foveate.models.vision.vit import ViT, ViTConfig
from foveate.nn import StackConfig, TransformerStack, initialize_language_model


@dataclass
class DualEncoderConfig:
    """The sizes of both Transformers. Defaults are those of CLIP ViT-B/32."""

    vocabulary: FromData
    """Size of the texts' vocabulary."""
    kind: Literal["clip", "siglip"] = "clip"
    """Which paper's model it is."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    image_size: int = 224
    """Height and width of the images that positions are learned for."""
    patch: int = 32
    """Height and width of a patch, in pixels."""
    image_width: int = 768
    """Width of the layers that read images."""
    image_heads: int = 12
    """Attention heads of each of these layers."""
    image_feedforward: int = 3072
    """Inner width of their feed-forward layers."""
    image_layers: int = 12
    """Blocks that read images."""
    width: int = 512
    """Width C of the layers that read texts."""
    heads: int = 8
    """Attention heads of each of these layers."""
    feedforward: int = 2048
    """Inner width of their feed-forward layers."""
    layers: int = 12
    """Blocks that read texts."""
    max_length: int = 77
    """The longest text, in tokens. SigLIP reads texts that are padded to this length."""
    embedding: int = 512
    """Width of the vectors that are compared; those of SigLIP are as wide as its layers that read images."""
    activation: Literal["relu", "gelu", "gelu-tanh", "gelu-sigmoid", "silu"] = "gelu-sigmoid"
    """Activation function of the feed-forward layers."""
    epsilon: float = 1e-5
    """What layer norms add to the variance."""
    dropout: float = 0.0
    """Share of attention weights that is dropped in training."""

    @property
    def vision(self) -> ViTConfig:
        """The config of the part that reads images."""
        return image_config(self)


class DualEncoder(nn.Module):
    """Compares each image with each text of a batch."""

    def __init__(self, config: DualEncoderConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config, clip = config, config.kind == "clip"
        self.token_embedding = nn.Embedding(config.vocabulary, config.width)
        self.reader = TransformerStack(text_config(config))
        embedding = config.embedding if clip else config.image_width
        self.text_output = nn.Linear(config.width, embedding, bias=not clip)
        initialize_language_model(self, config.layers)
        self.images = ViT(config.vision)
        self.image_output = nn.Linear(config.image_width, embedding, bias=False) if clip else nn.Identity()
        self.scale = nn.Parameter(torch.tensor(1 / 0.07).log())
        self.bias = None if clip else nn.Parameter(torch.tensor(-10.0))

    def forward(
        self, pixels: Float[Tensor, "B c h w"], tokens: Int[Tensor, "N T"], lengths: Int[Tensor, "N"]
    ) -> Output:
        """Logits (B, N): how well each image fits each text."""
        return Output(self.logits(self.embed_images(pixels), self.embed_captions(tokens, lengths)))

    def logits(self, images: Float[Tensor, "B E"], texts: Float[Tensor, "N E"]) -> Float[Tensor, "B N"]:
        """How well the images of some vectors fit the texts of others."""
        found = self.scale.exp() * images @ texts.mT
        return found if self.bias is None else found + self.bias

    def embed_images(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B E"]:
        """A vector of length 1 for each image."""
        return F.normalize(self.image_output(self.images(pixels).logits), dim=-1)

    def embed_places(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B S E"]:
        """A vector of length 1 for each patch: that of an image of which the pooling query sees this patch alone."""
        return F.normalize(self.image_output(self.images.pool_each(pixels)), dim=-1)

    def embed_captions(self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "B E"]:
        """A vector of length 1 for each text, whose last token is the end token, or for SigLIP padding."""
        x = self.token_embedding(tokens)
        if self.config.kind == "clip":
            x = self.reader(x, causal() & padding(lengths))
            last = x[torch.arange(len(x), device=x.device), lengths - 1]
        else:
            last = self.reader(x)[:, -1]
        return F.normalize(self.text_output(last), dim=-1)

    @property
    def tokens_before(self) -> int:
        """How many tokens of an image are before its patches."""
        return self.images.tokens_before

    def grid_size(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of the patches of images of this size."""
        return self.images.grid_size(height, width)


def text_config(config: DualEncoderConfig) -> StackConfig:
    """Pre-norm blocks with learned positions."""
    return StackConfig(
        width=config.width,
        heads=config.heads,
        feedforward=config.feedforward,
        layers=config.layers,
        norm="pre",
        epsilon=config.epsilon,
        activation=config.activation,
        positions="learned",
        max_length=config.max_length,
        dropout=0.0,
        attention_dropout=config.dropout,
    )


def image_config(config: DualEncoderConfig) -> ViTConfig:
    """A vision Transformer without a classifier."""
    clip = config.kind == "clip"
    return ViTConfig(
        classes=1,
        head="none",
        channels=config.channels,
        image_size=config.image_size,
        patch=config.patch,
        width=config.image_width,
        heads=config.image_heads,
        feedforward=config.image_feedforward,
        layers=config.image_layers,
        pooling="token" if clip else "attention-layer",
        input_norm=clip,
        patch_bias=not clip,
        activation=config.activation,
        epsilon=config.epsilon,
        attention_dropout=config.dropout,
    )


MODEL, CONFIG = DualEncoder, DualEncoderConfig

_SIGLIP = {
    "kind": "siglip",
    "patch": 16,
    "width": 768,
    "heads": 12,
    "feedforward": 3072,
    "max_length": 64,
    "activation": "gelu-tanh",
    "epsilon": 1e-6,
}

_TINY = {
    "image_size": 32,
    "patch": 8,
    "image_width": 96,
    "image_heads": 4,
    "image_feedforward": 192,
    "image_layers": 2,
    "width": 64,
    "heads": 4,
    "feedforward": 128,
    "layers": 2,
    "embedding": 64,
}

PRESETS: dict[str, dict[str, Any]] = {
    "clip-vit-base-32": {},
    "clip-vit-tiny": _TINY,
    "siglip-base-16": _SIGLIP,
}

SIZES: dict[str, dict[str, int]] = {
    "clip-vit-base-32": {"vocabulary": 49_408},
    "siglip-base-16": {"vocabulary": 32_000},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
