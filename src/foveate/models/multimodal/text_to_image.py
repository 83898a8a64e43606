"""A masked-token generator of images from captions (Muse, Chang et al. 2023, https://arxiv.org/abs/2301.00704).

Image and caption are two streams of tokens. In each block the words attend to the places of the image, then the places
attend to each other and to the words: cross-attention both ways. Hidden places are predicted, all at once; a drawing
begins with all of them hidden (MaskGIT, Chang et al. 2022, https://arxiv.org/abs/2202.04200). Muse reads its captions
with a frozen T5, which here is learned with the rest.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Mask, grid_window, padding
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError, check_literals
from foveate.nn import (
    DecoderBlock,
    Dropout,
    HeadFields,
    LearnedPositions,
    Positioned,
    attention_layer,
    decoder_block,
    initialize,
)


@dataclass
class TextToImageConfig(HeadFields):
    """The sizes of a generator of images. Defaults are those of MaskGIT. The window is one of places of the image."""

    vocabulary: FromData
    """Size of the captions' vocabulary."""
    codes: FromData
    """How many tokens an image may consist of."""
    side: FromData
    """Tokens of an image from left to right, and from top to bottom."""
    merge: int = 1
    """This many tokens in each direction are one place of the blocks: 2 makes them four times as fast."""
    embedding: int = 768
    """Width of the embeddings of an image's tokens, and of each token where it is predicted."""
    width: int = 768
    """Width C of all layers."""
    heads: int = 8
    """Attention heads of each layer."""
    feedforward: int = 3072
    """Inner width of the feed-forward layers."""
    layers: int = 24
    """Blocks of each stream."""
    max_length: int = 256
    """The longest caption, in tokens."""
    norm: Literal["post", "pre"] = "pre"
    """Layer norm after each residual connection, or before each layer (more stable)."""
    activation: Literal["relu", "gelu", "silu"] = "gelu"
    """Activation function of the feed-forward layers."""
    dropout: float = 0.1
    """Share of embeddings and layer outputs that is dropped in training."""
    attention_dropout: float = 0.0
    """Share of attention weights that is dropped in training."""
    activation_dropout: float = 0.0
    """Share of the inner activations of feed-forward layers that is dropped in training."""


class TextToImage(nn.Module):
    """Predicts the hidden tokens of an image from those that are known, and from a caption."""

    def __init__(self, config: TextToImageConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config = config
        if config.side % config.merge and config.side > 1:  # 1 stands for a size that is not known yet
            raise UserError(f"a side of {config.side} tokens cannot be merged by {config.merge}")
        self.image_embedding = nn.Embedding(config.codes + 1, config.embedding)
        self.merge = nn.Linear(config.merge**2 * config.embedding, config.width)
        self.text_embedding = nn.Embedding(config.vocabulary, config.width)
        self.image_positions = Positioned(LearnedPositions((config.side // config.merge) ** 2, config.width))
        self.text_positions = Positioned(LearnedPositions(config.max_length, config.width))
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(JointBlock(config, number) for number in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.split = nn.Linear(config.width, config.merge**2 * config.embedding)
        self.output = nn.Linear(config.embedding, config.codes)
        initialize(self, config.width)

    def forward(self, image: Int[Tensor, "B T"], tokens: Int[Tensor, "B S"], lengths: Int[Tensor, "B"]) -> Output:
        """Logits (B, T, N) of each place's token; places with the token N are hidden."""
        merged = self.merge(_blocks(self.image_embedding(image), self.config.side, self.config.merge))
        places = self.dropout(self.image_positions(merged))
        words = self.dropout(self.text_positions(self.text_embedding(tokens)))
        known, radius, side = padding(lengths), self.config.window, self.config.side // self.config.merge
        near = None if radius is None else grid_window(radius, side)
        for block in self.blocks:
            places, words = block(places, words, known, near)
        split = _unblocks(torch.relu(self.split(self.norm(places))), self.config.side, self.config.merge)
        return Output(self.output(split))


def _blocks(x: Float[Tensor, "B T E"], side: int, merge: int) -> Float[Tensor, "B P M"]:
    """The vectors of the tokens in each square of `merge` x `merge`, side by side; both row by row."""
    grid = x.reshape(len(x), side // merge, merge, side // merge, merge, -1)
    return grid.transpose(2, 3).reshape(len(x), (side // merge) ** 2, -1)


def _unblocks(x: Float[Tensor, "B P M"], side: int, merge: int) -> Float[Tensor, "B T E"]:
    """The inverse of `_blocks`."""
    grid = x.reshape(len(x), side // merge, side // merge, merge, merge, -1)
    return grid.transpose(2, 3).reshape(len(x), side**2, -1)


class JointBlock(nn.Module):
    """A block of each stream: words attend to each other and to the image, then places to each other and the words."""

    def __init__(self, config: TextToImageConfig, number: int) -> None:
        super().__init__()
        attention = partial(attention_layer, config, config.attention_dropout, number)
        self.text: DecoderBlock = decoder_block(config, attention)
        self.image: DecoderBlock = decoder_block(config, attention)
        # With pre-norm nothing else keeps what is attended to at one scale.
        self.places_norm, self.words_norm = nn.LayerNorm(config.width), nn.LayerNorm(config.width)

    def forward(
        self,
        places: Float[Tensor, "B T C"],
        words: Float[Tensor, "B S C"],
        known: Mask,
        near: Mask | None = None,
    ) -> tuple[Float[Tensor, "B T C"], Float[Tensor, "B S C"]]:
        """`known` masks the padding of captions, `near` what places are too far for each other."""
        words = self.text(words, self.places_norm(places), mask=known)
        return self.image(places, self.words_norm(words), mask=near, source_mask=known), words


MODEL, CONFIG = TextToImage, TextToImageConfig

PRESETS: dict[str, dict[str, Any]] = {
    "text-to-image": {},
    "text-to-image-large": {"embedding": 1024, "width": 1024, "heads": 16, "feedforward": 4096},
    "text-to-image-tiny": {
        "merge": 2,
        "embedding": 96,
        "width": 128,
        "heads": 4,
        "feedforward": 384,
        "layers": 4,
        "dropout": 0.0,
    },
}
