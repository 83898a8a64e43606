"""Images and captions as vectors that are near where they belong together (CLIP, Radford et al. 2021).

https://arxiv.org/abs/2103.00020. The image's vector is attention to all places of a feature map with their mean as the
query; the caption's is the last token's of a causal Transformer.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import causal, padding
from foveate.config import FromData
from foveate.contracts import Output
from foveate.models.multimodal.image_places import ImagePlaces
from foveate.models.vision.image_encoder import Backbone
from foveate.nn import (
    HeadFields,
    MultiHeadAttention,
    StackConfig,
    TransformerStack,
    initialize_language_model,
    stack_heads,
)


@dataclass
class CLIPConfig(HeadFields):
    """The sizes of a matcher of images and captions. Defaults are those of the paper's smallest ResNet.

    Split heads, unequal heads and the window are those of the layers that read captions."""

    vocabulary: FromData
    """Size of the captions' vocabulary."""
    image_encoder: Backbone = "resnet50"
    """The vision preset whose feature map is read."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    image_size: int = 224
    """Height and width of the images, for image encoders that learn positions."""
    image_positions: Literal["none", "sinusoidal"] = "sinusoidal"
    """Join waves of row and column to the features of each place."""
    embedding: int = 1024
    """Width of the vectors that are compared."""
    width: int = 512
    """Width C of the layers that read captions."""
    heads: int = 8
    """Attention heads of each of these layers, and of the attention to the feature map."""
    layers: int = 12
    """Blocks that read captions."""
    max_length: int = 77
    """The longest caption, in tokens."""


class CLIP(nn.Module):
    """Compares each image with each caption of a batch."""

    def __init__(self, config: CLIPConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocabulary, config.width)
        self.reader = TransformerStack(
            StackConfig(
                width=config.width,
                **stack_heads(config),
                window=config.window,
                feedforward=4 * config.width,
                layers=config.layers,
                norm="pre",
                activation="gelu-sigmoid",
                positions="learned",
                max_length=config.max_length,
                dropout=0.0,
            )
        )
        self.text_output = nn.Linear(config.width, config.embedding, bias=False)
        initialize_language_model(self, config.layers)
        self.places = ImagePlaces(config.image_encoder, config.channels, config.image_size, config.image_positions)
        width = self.places.width
        head_width = max(1, width // config.heads)
        self.pool = MultiHeadAttention(width, config.heads, head_width=head_width, output_width=config.embedding)
        self.scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(
        self, pixels: Float[Tensor, "B c h w"], tokens: Int[Tensor, "B T"], lengths: Int[Tensor, "B"]
    ) -> Output:
        """Logits (B, B): how well each image fits each caption, a row for each image."""
        return Output(self.logits(self.embed_images(pixels), self.embed_captions(tokens, lengths)))

    def logits(self, images: Float[Tensor, "B E"], texts: Float[Tensor, "N E"]) -> Float[Tensor, "B N"]:
        """How well the images of some vectors fit the captions of others."""
        return self.scale.exp().clamp(max=100) * images @ texts.mT

    def embed_images(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B E"]:
        """A vector of length 1 for each image."""
        places = self.places(pixels)
        found = self.pool(places.mean(1, keepdim=True), places)
        return F.normalize(found[:, 0], dim=-1)

    def embed_places(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B S E"]:
        """A vector of length 1 for each place: that of an image of which the pooling query sees this place alone."""
        places = self.places(pixels)
        query = places.mean(1, keepdim=True).expand(-1, places.shape[1], -1).flatten(0, 1)[:, None]
        alone: Tensor = self.pool(query, places.flatten(0, 1)[:, None])
        return F.normalize(alone.unflatten(0, places.shape[:2])[:, :, 0], dim=-1)

    def embed_captions(self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "B E"]:
        """A vector of length 1 for each caption, whose last token is the end token."""
        read = self.reader(self.token_embedding(tokens), causal() & padding(lengths))
        last = read[torch.arange(len(read), device=read.device), lengths - 1]
        return F.normalize(self.text_output(last), dim=-1)


MODEL, CONFIG = CLIP, CLIPConfig

PRESETS: dict[str, dict[str, Any]] = {
    "clip-resnet50": {},
    "clip-tiny": {"image_encoder": "resnet-light", "embedding": 96, "width": 96, "heads": 4, "layers": 2},
}

SIZES: dict[str, dict[str, int]] = {"clip-resnet50": {"vocabulary": 49_408}}
"""The vocabulary of the paper, which other data replaces."""
