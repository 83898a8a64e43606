"""The vision Transformer: an image is a sequence of patches (Dosovitskiy et al. 2021, https://arxiv.org/abs/2010.11929).

DeiT III (Touvron et al. 2022, https://arxiv.org/abs/2204.07118) adds layer scale and gives the class token no position.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError, check_literals
from foveate.models.vision.sizes import into_patches
from foveate.nn import Dropout, FeedForward, MultiHeadAttention, Residual, TransformerBlock, initialize, norm


@dataclass
class ViTConfig:
    """The sizes of a vision Transformer. Defaults are those of ViT-Base with patches of 16 x 16 pixels."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    image_size: int = 224
    """Height and width of the images that positions are learned for. For other sizes they are interpolated."""
    patch: int = 16
    """Height and width of a patch, in pixels. Each patch is projected to one vector."""
    width: int = 768
    """Width C of all layers."""
    heads: int = 12
    """Attention heads of each layer."""
    feedforward: int = 3072
    """Inner width of the feed-forward layers."""
    layers: int = 12
    """Blocks of self-attention and a feed-forward layer."""
    pooling: Literal["token", "mean", "attention"] = "token"
    """What the classifier reads: a class token beside the patches, the mean of the patches, or the result of multi-head
    attention to them with a learned query (Zhai et al. 2022, https://arxiv.org/abs/2106.04560)."""
    class_position: bool = True
    """Whether the class token has a learned position as the patches do."""
    layer_scale: float | None = None
    """Initial value of a learned scale of each channel of each layer's output; None for no such scale."""
    epsilon: float = 1e-6
    """What layer norms add to the variance."""
    dropout: float = 0.0
    """Share of embeddings and layer outputs that is dropped in training."""
    attention_dropout: float = 0.0
    """Share of attention weights that is dropped in training."""
    depth_dropout: float = 0.0
    """Share of images for which a layer is skipped in training (stochastic depth), the same for all layers."""


class ViT(nn.Module):
    """Reads images whose height and width are multiples of the patch's."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        check_literals(config)
        if config.image_size % config.patch:
            raise UserError(f"image_size {config.image_size} is not a multiple of patch {config.patch}")
        self.config = config
        width, rows = config.width, config.image_size // config.patch
        token = config.pooling == "token"
        self.grid_width, self.stride = width, config.patch
        self.patches = nn.Conv2d(config.channels, width, config.patch, stride=config.patch)
        self.class_token = nn.Parameter(torch.empty(1, 1, width)) if token else None
        self.with_position = int(token and config.class_position)
        self.positions = nn.Parameter(torch.empty(1, self.with_position + rows * rows, width))
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(width, config.epsilon)
        self.pool = AttentionPool(width, config.heads) if config.pooling == "attention" else None
        self.output = nn.Linear(width, config.classes)
        self._initialize()

    def _initialize(self) -> None:
        initialize(self, self.config.width)
        nn.init.xavier_uniform_(self.patches.weight.flatten(1))  # it is a linear layer of the pixels of a patch
        if self.patches.bias is not None:
            nn.init.zeros_(self.patches.bias)
        nn.init.normal_(self.positions, std=0.02)
        if self.class_token is not None:
            nn.init.normal_(self.class_token, std=0.02)

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N)."""
        encoded = self.encode(pixels)
        if self.pool is not None:
            pooled = self.pool(encoded)
        else:
            pooled = encoded.mean(1) if self.class_token is None else encoded[:, 0]
        return Output(self.output(pooled))

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The encoded patches as a feature map, without the class token."""
        rows, columns = (side // self.stride for side in pixels.shape[2:])
        return self.encode(pixels)[:, -rows * columns :].mT.unflatten(2, (rows, columns))

    def encode(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B T C"]:
        """The encoded class token, if there is one, and the patches row by row."""
        into_patches(self.stride, pixels)
        patches = self.patches(pixels)
        token, places = self.interpolate_positions(*patches.shape[2:])
        x = patches.flatten(2).mT + places
        if self.class_token is not None:
            first = self.class_token + token if self.with_position else self.class_token
            x = torch.cat([first.expand(len(x), -1, -1), x], 1)
        x = self.dropout(x)
        for each in self.blocks:
            x = each(x)
        return self.norm(x)

    def interpolate_positions(self, rows: int, columns: int) -> tuple[Float[Tensor, "1 t C"], Float[Tensor, "1 T C"]]:
        """The position of the class token, if it has one, and those of so many rows and columns of patches."""
        token, places = self.positions.tensor_split([self.with_position], 1)
        side = self.config.image_size // self.config.patch
        if (rows, columns) == (side, side):
            return token, places
        square = places.mT.unflatten(2, (side, side))
        return token, F.interpolate(square, (rows, columns), mode="bicubic", align_corners=False).flatten(2).mT


class AttentionPool(nn.Module):
    """Multi-head attention to a sequence with one learned query."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(1, 1, width))
        nn.init.normal_(self.query)
        self.attention = MultiHeadAttention(width, heads)

    def forward(self, x: Float[Tensor, "B S C"]) -> Float[Tensor, "B C"]:
        return self.attention(self.query.expand(len(x), -1, -1), x).squeeze(1)


def block(config: ViTConfig) -> TransformerBlock:
    """Pre-norm self-attention and a feed-forward layer."""
    around = norm("layer", config.epsilon), config.layer_scale, config.depth_dropout
    return TransformerBlock(
        MultiHeadAttention(config.width, config.heads, dropout=config.attention_dropout),
        FeedForward(config.width, config.feedforward, "gelu", config.dropout),
        partial(Residual, config.width, "pre", config.dropout, *around),
    )


MODEL, CONFIG = ViT, ViTConfig

TRAINED = {"learning_rate": 1e-3, "schedule": "cosine", "weight_decay": 0.05, "betas": (0.9, 0.999)}

_DEIT3 = {"class_position": False, "layer_scale": 1e-6}

PRESETS = {
    "vit-tiny": (
        "6 layers, width 128, patches of 4 x 4 pixels: for small images, such as 28 x 28",
        {
            "image_size": 28,
            "patch": 4,
            "width": 128,
            "heads": 4,
            "feedforward": 512,
            "layers": 6,
            "dropout": 0.1,
        },
        TRAINED,
    ),
    "vit-base-16": ("12 layers, width 768, patches of 16 x 16 pixels (Dosovitskiy et al. 2021)", {}),
    "vit-large-16": (
        "24 layers, width 1024, patches of 16 x 16 pixels",
        {"width": 1024, "heads": 16, "feedforward": 4096, "layers": 24},
    ),
    "deit3-small-16": (
        "12 layers, width 384, layer scale (DeiT III, Touvron et al. 2022)",
        {**_DEIT3, "width": 384, "heads": 6, "feedforward": 1536, "depth_dropout": 0.05},
    ),
    "deit3-base-16": ("12 layers, width 768, layer scale (DeiT III)", {**_DEIT3, "depth_dropout": 0.2}),
}
