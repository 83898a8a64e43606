"""MViTv2: a multiscale vision Transformer with pooled attention (Li et al. 2022, https://arxiv.org/abs/2112.01526)."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.models.vision.sizes import divide_into
from foveate.nn import (
    Dropout,
    FeedForward,
    PooledAttention,
    Residual,
    StochasticDepth,
    depth_rates,
    initialize,
    norm,
)

EPSILON = 1e-6
"""What layer norms add to the variance."""


@dataclass
class MViTConfig:
    """The sizes of an MViTv2. Defaults are those of the tiny one."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    image_size: int = 224
    """Height and width of the images that relative positions are learned for. For other sizes they are interpolated."""
    patch: int = 4
    """Pixels from one patch to the next. Patches overlap: they have twice as many rows and columns, less one."""
    width: int = 96
    """Width of the first stage; each further stage is twice as wide as the one before."""
    blocks: tuple[int, ...] = (1, 2, 5, 2)
    """Blocks of each stage. Each stage after the first halves the rows and columns of the feature map."""
    head_width: int = 96
    """Width of each attention head."""
    key_stride: int = 4
    """By how much keys and values of the first stage are pooled, along rows and columns; half as much in each further
    stage, and no less than 1."""
    expansion: int = 4
    """How many times wider than a stage its feed-forward layers are inside."""
    dropout: float = 0.0
    """Share of embeddings and layer outputs that is dropped in training."""
    attention_dropout: float = 0.0
    """Share of attention weights that is dropped in training."""
    depth_dropout: float = 0.1
    """Share of images for which the last block is skipped in training; earlier blocks have less (stochastic depth)."""


class MViT(nn.Module):
    """Reads images of any size. Only relative positions say where a patch is."""

    def __init__(self, config: MViTConfig) -> None:
        super().__init__()
        self.config = config
        divide_into(config.head_width, "width", (config.width,))
        patch, width, side = config.patch, config.width, -(-config.image_size // config.patch)
        self.patches = nn.Conv2d(config.channels, width, 2 * patch - 1, stride=patch, padding=patch - 1)
        self.dropout = Dropout(config.dropout)
        rates = iter(depth_rates(config.depth_dropout, sum(config.blocks)))
        self.stages = nn.ModuleList()
        self.grid_widths: list[int] = []
        for stage, count in enumerate(config.blocks):
            blocks = nn.Sequential()
            for number in range(count):
                stride = 2 if stage and not number else 1
                strides = stride, max(1, config.key_stride // 2**stage)
                outer = width * stride
                blocks.append(MViTBlock(config, width, outer, side, strides, next(rates)))
                width, side = outer, -(-side // stride)
            self.stages.append(blocks)
            self.grid_widths.append(width)
        self.grid_width, self.stride = width, patch * 2 ** (len(config.blocks) - 1)
        self.norm = nn.LayerNorm(width, EPSILON)
        self.output = nn.Linear(width, config.classes)
        initialize(self, config.width)

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N)."""
        return Output(self.output(self.grid(pixels).mean((2, 3))))

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The last feature map."""
        return self.grids(pixels)[-1]

    def grids(self, pixels: Float[Tensor, "B c h w"]) -> list[Float[Tensor, "B _ _ _"]]:
        """The feature map of each stage, `grid_widths` channels wide; the last norm is that of the last one alone."""
        x, found = self.dropout(self.patches(pixels).permute(0, 2, 3, 1)), []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        return [one.permute(0, 3, 1, 2) for one in (*found[:-1], self.norm(x))]


class MViTBlock(nn.Module):
    """Pooled attention, then a feed-forward layer: C -> D."""

    def __init__(
        self,
        config: MViTConfig,
        width: int,
        outer: int,
        side: int,
        strides: tuple[int, int],
        depth_dropout: float,
    ) -> None:
        """`side` is that of its input map, `strides` are those of the queries and of the keys."""
        super().__init__()
        heads = outer // config.head_width
        self.norm = nn.LayerNorm(width, EPSILON)
        self.self = PooledAttention(width, outer, heads, side, *strides, dropout=config.attention_dropout)
        self.dropout, self.depth = Dropout(config.dropout), StochasticDepth(depth_dropout)
        self.project = None if width == outer else nn.Linear(width, outer)
        self.pool = None if strides[0] == 1 else nn.MaxPool2d(3, strides[0], padding=1)
        self.feedforward = FeedForward(outer, config.expansion * outer, "gelu", config.dropout)
        residual = partial(Residual, outer, "pre", config.dropout, norm("layer", EPSILON))
        self.around_feedforward = residual(depth_dropout=depth_dropout)

    def forward(self, x: Float[Tensor, "B h w C"]) -> Float[Tensor, "B i j D"]:
        normalized = self.norm(x)
        # As in the public weights: where the width changes, what is passed on is normalized too.
        shortcut = x if self.project is None else self.project(normalized)
        if self.pool is not None:
            shortcut = self.pool(shortcut.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        x = shortcut + self.depth(self.dropout(self.self(normalized)))
        return self.around_feedforward(x, self.feedforward)


MODEL, CONFIG = MViT, MViTConfig

TRAINED = {"learning_rate": 1e-3, "schedule": "cosine", "weight_decay": 0.05, "betas": (0.9, 0.999)}

PRESETS: dict[str, dict[str, Any]] = {
    "mvitv2-tiny": {},
    "mvitv2-base": {"blocks": (2, 3, 16, 3), "depth_dropout": 0.3},
    "mvitv2-nano": {
        "image_size": 28,
        "patch": 2,
        "width": 48,
        "blocks": (1, 2, 2),
        "head_width": 24,
        "key_stride": 2,
        "depth_dropout": 0.0,
    },
}

TRAINING = {
    "mvitv2-tiny": TRAINED,
    "mvitv2-base": TRAINED,
    "mvitv2-nano": TRAINED,
}
"""The settings of training that suit a preset, where they differ from its task's."""

SIZES: dict[str, dict[str, int]] = {name: {"classes": 1000} for name in ("mvitv2-tiny", "mvitv2-base")}
"""The classes of ImageNet, which other data replaces."""
