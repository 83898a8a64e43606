"""EfficientNet-Lite: inverted bottlenecks, whose width and depth grow together (Tan and Le 2019, Sandler et al. 2018).

https://arxiv.org/abs/1905.11946 and https://arxiv.org/abs/1801.04381. The Lite models have no squeeze-and-excitation,
and their activation is ReLU6. Images are padded as in TensorFlow, for which Google published weights.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError
from foveate.models.vision.sizes import one_for_each
from foveate.nn import ConvNorm, Dropout, ResidualBlock, SamePaddedConv2d, depth_rates, initialize_convolutions

KERNELS = 3, 3, 5, 3, 5, 5, 3
STRIDES = 1, 2, 2, 2, 1, 2, 1
EXPANSIONS = 1, 6, 6, 6, 6, 6, 6
"""Of each stage: rows and columns of the kernels, stride of the first block, and how much wider a block is inside."""


@dataclass
class EfficientNetConfig:
    """The sizes of an EfficientNet-Lite. Defaults are those of the smallest one, Lite0."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    blocks: tuple[int, ...] = (1, 2, 2, 3, 3, 4, 1)
    """Blocks of each of the seven stages."""
    widths: tuple[int, ...] = (16, 24, 40, 80, 112, 192, 320)
    """Width of each stage's output, in channels."""
    stem_width: int = 32
    """Width of the first convolution, in channels."""
    feature_width: int = 1280
    """Width of the last convolution, whose mean over the image is classified."""
    stages: int = 7
    """How many of the stages there are. With fewer than seven, the feature map is that of the last one: of five, the
    stride is 16."""
    depth_dropout: float = 0.2
    """Share of images for which the last block is skipped in training; earlier blocks have less (stochastic depth)."""
    dropout: float = 0.2
    """Share of the pooled features that is dropped in training."""


class EfficientNet(nn.Module):
    """Stages of inverted bottlenecks between two convolutions."""

    def __init__(self, config: EfficientNetConfig) -> None:
        super().__init__()
        if not 1 <= config.stages <= len(KERNELS):
            raise UserError(f"stages is {config.stages}, but must be 1 to {len(KERNELS)}")
        self.config, self.stride = config, 2 * math.prod(STRIDES[: config.stages])
        one_for_each("stage", len(KERNELS), "blocks", config.blocks)
        one_for_each("stage", len(KERNELS), "widths", config.widths)
        self.stem = layer(config.channels, config.stem_width, 3, 2)
        rates = iter(depth_rates(config.depth_dropout, sum(config.blocks)))
        self.stages = nn.ModuleList()
        width = config.stem_width
        for stage, (count, outer) in enumerate(zip(config.blocks, config.widths, strict=True)):
            if stage == config.stages:
                break
            blocks = nn.Sequential()
            for number in range(count):
                stride = 1 if number else STRIDES[stage]
                blocks.append(block(width, outer, EXPANSIONS[stage], KERNELS[stage], stride, next(rates)))
                width = outer
            self.stages.append(blocks)
        whole = config.stages == len(KERNELS)
        self.features = layer(width, config.feature_width, 1) if whole else nn.Identity()
        self.grid_width = config.feature_width if whole else width
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(self.grid_width, config.classes)
        initialize_convolutions(self)

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N)."""
        return Output(self.output(self.dropout(self.grid(pixels).mean((2, 3)))))

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The last feature map."""
        x = self.stem(pixels)
        for stage in self.stages:
            x = stage(x)
        return self.features(x)


layer = partial(ConvNorm, activation=F.relu6, eps=1e-3, convolution=SamePaddedConv2d)
"""A convolution of a width, an outer width, a kernel and a stride, batch norm and ReLU6."""


def block(width: int, outer: int, expansion: int, kernel: int, stride: int, depth_dropout: float) -> nn.Module:
    """To `expansion` times the width, a convolution of each channel for itself, and to the outer width, without an
    activation; added to the input where that has the same shape."""
    inner = expansion * width
    branch = nn.Sequential(
        *([layer(width, inner, 1)] if expansion > 1 else []),
        layer(inner, inner, kernel, stride, groups=inner),
        layer(inner, outer, 1, activation=None),
    )
    return ResidualBlock(branch, depth_dropout=depth_dropout) if stride == 1 and width == outer else branch


MODEL, CONFIG = EfficientNet, EfficientNetConfig

PRESETS: dict[str, dict[str, Any]] = {
    "efficientnet-lite0": {},
    "efficientnet-lite0-16": {"stages": 5},
}

SIZES: dict[str, dict[str, int]] = {"efficientnet-lite0": {"classes": 1000}}
"""The classes of ImageNet, which other data replaces."""
