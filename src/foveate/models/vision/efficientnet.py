"""EfficientNet: inverted bottlenecks, whose width and depth grow together (Tan and Le 2019, Sandler et al. 2018).

https://arxiv.org/abs/1905.11946 and https://arxiv.org/abs/1801.04381. The Lite models have no squeeze-and-excitation
(Hu et al. 2018, https://arxiv.org/abs/1709.01507), and their activation is ReLU6. Images are padded as in TensorFlow,
for which Google published weights.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError, check_literals
from foveate.models.vision.sizes import one_for_each
from foveate.nn import ConvNorm, Dropout, ResidualBlock, SamePaddedConv2d, depth_rates, initialize_convolutions

KERNELS = 3, 3, 5, 3, 5, 5, 3
STRIDES = 1, 2, 2, 2, 1, 2, 1
EXPANSIONS = 1, 6, 6, 6, 6, 6, 6
"""Of each stage: rows and columns of the kernels, stride of the first block, and how much wider a block is inside."""


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu6": F.relu6, "silu": F.silu}


@dataclass
class EfficientNetConfig:
    """The sizes of an EfficientNet. Defaults are those of the smallest Lite one, Lite0."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    image_size: int = 224
    """Height and width of the images of the training; others are read too."""
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
    squeeze: float | None = None
    """Width of the squeeze-and-excitation of a block, as a share of the width of its input; None for no such layer."""
    activation: Literal["relu6", "silu"] = "relu6"
    """Activation function."""
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
        check_literals(config)
        layer = partial(ConvNorm, activation=ACTIVATIONS[config.activation], eps=1e-3, convolution=SamePaddedConv2d)
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
                branch = block(layer, width, outer, stage, stride, config.squeeze)
                added, rate = stride == 1 and width == outer, next(rates)
                blocks.append(ResidualBlock(branch, depth_dropout=rate) if added else branch)
                width = outer
            self.stages.append(blocks)
        whole = config.stages == len(KERNELS)
        self.features = layer(width, config.feature_width, 1) if whole else nn.Identity()
        self.grid_width = config.feature_width if whole else width
        self.last_of_map = [stage for stage in range(config.stages) if STRIDES[stage + 1 : config.stages][:1] != (1,)]
        self.grid_widths = [*(config.widths[stage] for stage in self.last_of_map[:-1]), self.grid_width]
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(self.grid_width, config.classes)
        initialize_convolutions(self)

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N)."""
        return Output(self.output(self.dropout(self.grid(pixels).mean((2, 3)))))

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The last feature map."""
        return self.grids(pixels)[-1]

    def grids(self, pixels: Float[Tensor, "B c h w"]) -> list[Float[Tensor, "B _ _ _"]]:
        """The last feature map of each stride, `grid_widths` channels wide."""
        x, found = self.stem(pixels), []
        for number, stage in enumerate(self.stages):
            x = stage(x)
            if number in self.last_of_map:
                found.append(x)
        return [*found[:-1], self.features(x)]


def block(
    layer: partial[ConvNorm], width: int, outer: int, stage: int, stride: int, squeeze: float | None
) -> nn.Sequential:
    """To several times the width, a convolution of each channel for itself, perhaps squeeze-and-excitation, and to the
    outer width, without an activation."""
    expansion = EXPANSIONS[stage]
    inner = expansion * width
    activation = layer.keywords["activation"]
    excite = [] if squeeze is None else [SqueezeExcite(inner, max(1, int(width * squeeze)), activation)]
    return nn.Sequential(
        *([layer(width, inner, 1)] if expansion > 1 else []),
        layer(inner, inner, KERNELS[stage], stride, groups=inner),
        *excite,
        layer(inner, outer, 1, activation=None),
    )


class SqueezeExcite(nn.Module):
    """Scales each channel by a number between 0 and 1, which the means of all channels decide."""

    def __init__(self, width: int, inner: int, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.reduce, self.expand = nn.Conv2d(width, inner, 1), nn.Conv2d(inner, width, 1)
        self.activation = activation

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        means = x.mean((2, 3), keepdim=True)
        return x * self.expand(self.activation(self.reduce(means))).sigmoid()


MODEL, CONFIG = EfficientNet, EfficientNetConfig

PRESETS: dict[str, dict[str, Any]] = {
    "efficientnet-lite0": {},
    "efficientnet-lite0-16": {"stages": 5},
    "efficientnet-b0": {"squeeze": 0.25, "activation": "silu"},
}

SIZES: dict[str, dict[str, int]] = {name: {"classes": 1000} for name in ("efficientnet-lite0", "efficientnet-b0")}
"""The classes of ImageNet, which other data replaces."""
