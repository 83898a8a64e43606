"""Segmenter: a label for each pixel, by queries that each stand for a class (Strudel et al. 2021,
https://arxiv.org/abs/2105.05633).

The score of a class at a place of the encoder's feature map is the product of their vectors. Those of the classes read
the image first: by attention to its places, as in MaskFormer (Cheng et al. 2021, https://arxiv.org/abs/2107.06278).

B batch    N classes    S places of the feature map    h, w height and width in pixels
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError, check_literals
from foveate.models.vision.image_encoder import Backbone, fix_norms, image_encoder
from foveate.nn import (
    DecoderBlock,
    FeedForward,
    MultiHeadAttention,
    Residual,
    grid_positions,
    inside_images,
)


@dataclass
class SegmenterConfig:
    """The sizes of the model. Defaults are those of Seg-B-Mask with patches of 16 x 16 pixels."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    backbone: Backbone = "vit-base-16"
    """Preset of the encoder, whose feature map is labelled: any that has one."""
    image_size: int = 224
    """Height and width of the images, for an encoder that learns positions."""
    fixed_norms: bool = False
    """Batch norms of the encoder keep the mean and the deviation that they have, as those of trained weights do."""
    width: int = 768
    """Width C of the decoder, a multiple of 4."""
    heads: int = 12
    """Attention heads of each layer."""
    feedforward: int = 3072
    """Inner width of the feed-forward layers."""
    decoder_layers: int = 2
    """Blocks in which classes attend to each other and to the feature map."""
    detail: int = 1
    """Each place of the feature map is divided into this many rows and columns, each of which has a vector."""
    norm: Literal["post", "pre"] = "pre"
    """Layer norm after each residual sum, or before each layer."""
    dropout: float = 0.1
    """Share of layer outputs that is dropped in training."""


class Segmenter(nn.Module):
    """Reads images of any size that its encoder reads."""

    backbone: Any
    """A `foveate.contracts.GridEncoder`."""

    def __init__(self, config: SegmenterConfig) -> None:
        super().__init__()
        check_literals(config)
        if config.width % 4:
            raise UserError(f"width is {config.width}, but must be a multiple of 4: waves of rows and of columns")
        self.config, width = config, config.width
        self.backbone = image_encoder(config.backbone, config.channels, config.image_size)
        if config.fixed_norms:
            fix_norms(self.backbone)
        self.project = nn.Conv2d(self.backbone.grid_width, width, 1)
        self.norm = nn.LayerNorm(width)
        self.classes = nn.Parameter(torch.empty(config.classes, width))
        attention = partial(MultiHeadAttention, width, config.heads, dropout=config.dropout)
        self.decoder = nn.ModuleList(
            DecoderBlock(
                attention(),
                attention(),
                FeedForward(width, config.feedforward, "gelu", config.dropout),
                partial(Residual, width, config.norm, config.dropout),
            )
            for _ in range(config.decoder_layers)
        )
        self.place_output = nn.Conv2d(width, width * config.detail**2, 1)
        self.class_output = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width))
        nn.init.normal_(self.classes)

    def forward(self, pixels: Float[Tensor, "B c h w"], sizes: Int[Tensor, "B 2"] | None = None) -> Output:
        """Logits of the classes for each pixel, row by row (B, h·w, N). `sizes` are the height and the width of each
        image, where images are padded at the right and the bottom."""
        grid = self.project(self.backbone.grid(pixels))
        inside = inside_images(pixels, grid, sizes)
        places, mask = grid_positions(inside, self.config.width, grid.dtype), inside.flatten(1)[:, None, None]
        x = self.norm(grid.flatten(2).mT)
        y = self.classes.expand(len(grid), -1, -1)
        for block in self.decoder:
            y = block(y, x, source_mask=mask, source_positions=places)
        vectors = F.pixel_shuffle(self.place_output(x.mT.unflatten(2, grid.shape[2:])), self.config.detail)
        masks = torch.einsum("bcij,bnc->bnij", vectors, self.class_output(y)) / self.config.width**0.5
        masks = F.interpolate(masks, pixels.shape[2:], mode="bilinear", align_corners=False)
        return Output(masks.flatten(2).mT)


MODEL, CONFIG = Segmenter, SegmenterConfig

_TINY = {"width": 96, "heads": 4, "feedforward": 192, "dropout": 0.0, "detail": 2}

PRESETS: dict[str, dict[str, Any]] = {
    "segmenter-base-16": {},
    "segmenter-light": {**_TINY, "backbone": "vit-light"},
    "segmenter-tiny": {**_TINY, "backbone": "resnet-light"},
    "segmenter-lite0-tiny": {**_TINY, "backbone": "efficientnet-lite0-16", "fixed_norms": True, "detail": 4},
}

SIZES: dict[str, dict[str, int]] = {"segmenter-base-16": {"classes": 150}}
"""The sizes of the data of a preset's paper, which other data replaces."""
