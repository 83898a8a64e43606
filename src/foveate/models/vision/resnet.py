"""Residual networks, and plain networks of equal depth (He et al. 2016, https://arxiv.org/abs/1512.03385)."""

from dataclasses import dataclass
from typing import Any, Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import check_literals
from foveate.models.vision.sizes import one_for_each_stage
from foveate.nn import ConvNorm, Dropout, ResidualBlock, depth_rates, initialize_convolutions


@dataclass
class ResNetConfig:
    """The sizes of a residual network. Defaults are those of the 18-layer network."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    blocks: tuple[int, ...] = (2, 2, 2, 2)
    """Blocks of each stage. Each stage after the first halves the height and the width of the feature map."""
    widths: tuple[int, ...] = (64, 128, 256, 512)
    """Width of the 3x3 convolutions of each stage, in channels."""
    block: Literal["basic", "bottleneck"] = "basic"
    """Two 3x3 convolutions, or 1x1, 3x3, 1x1, the last one to four times the width."""
    shortcut: Literal["projection", "pooled", "padding", "none"] = "projection"
    """What is added to a block's output where its input has another shape: a 1x1 convolution of the input (option B of
    the paper), the same of 2x2 means of the input (He et al. 2019, https://arxiv.org/abs/1812.01187), or the input
    subsampled and padded by channels of zeros (option A). With "none" nothing is added in any block: a plain
    network."""
    stem: Literal["7x7", "3x3", "deep"] = "7x7"
    """The first layers: a 7x7 convolution, or three 3x3 ones ("deep", He et al. 2019), and max pooling to a quarter of
    the image's size; or, for small images, a 3x3 convolution at full size (section 4.2)."""
    depth_dropout: float = 0.0
    """Share of images for which the last block is skipped in training; earlier blocks have less (stochastic depth)."""
    dropout: float = 0.0
    """Share of the pooled features that is dropped in training."""


class ResNet(nn.Module):
    """Stages of blocks, each of which adds to its input; their mean over the image is classified."""

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config = config
        one_for_each_stage(blocks=config.blocks, widths=config.widths)
        self.stem, self.stride = STEMS[config.stem](config.channels, config.widths[0])
        rates = iter(depth_rates(config.depth_dropout, sum(config.blocks)))
        self.stages = nn.ModuleList()
        width = config.widths[0]
        self.grid_widths: list[int] = []
        for stage, (count, inner) in enumerate(zip(config.blocks, config.widths, strict=True)):
            blocks = nn.Sequential()
            for number in range(count):
                stride = 2 if stage and not number else 1
                branch, outer = BRANCHES[config.block](width, inner, stride)
                first = config.shortcut == "pooled" and not number  # each stage has a shortcut with weights there
                blocks.append(self._block(branch, width, outer, stride, next(rates), first))
                self.stride, width = self.stride * stride, outer
            self.stages.append(blocks)
            self.grid_widths.append(width)
        self.grid_width = width
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(width, config.classes)
        initialize_convolutions(self)

    def _block(
        self, branch: nn.Module, width: int, outer: int, stride: int, depth_dropout: float, first: bool
    ) -> nn.Module:
        if self.config.shortcut == "none":
            return nn.Sequential(branch, nn.ReLU())
        changes = stride > 1 or width != outer or first
        shortcut = SHORTCUTS[self.config.shortcut](width, outer, stride) if changes else None
        return ResidualBlock(branch, shortcut, F.relu, depth_dropout)

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N)."""
        return Output(self.output(self.dropout(self.grid(pixels).mean((2, 3)))))

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The last feature map."""
        return self.grids(pixels)[-1]

    def grids(self, pixels: Float[Tensor, "B c h w"]) -> list[Float[Tensor, "B _ _ _"]]:
        """The feature map of each stage, `grid_widths` channels wide."""
        x, found = self.stem(pixels), []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        return found


def large_stem(channels: int, width: int) -> tuple[nn.Module, int]:
    """A 7x7 convolution of stride 2 and max pooling; each place stands for 4x4 pixels."""
    return nn.Sequential(ConvNorm(channels, width, 7, stride=2), nn.MaxPool2d(3, stride=2, padding=1)), 4


def deep_stem(channels: int, width: int) -> tuple[nn.Module, int]:
    """Three 3x3 convolutions, the first of stride 2, and max pooling."""
    inner = width // 2
    layers = ConvNorm(channels, inner, 3, stride=2), ConvNorm(inner, inner, 3), ConvNorm(inner, width, 3)
    return nn.Sequential(*layers, nn.MaxPool2d(3, stride=2, padding=1)), 4


def small_stem(channels: int, width: int) -> tuple[nn.Module, int]:
    """A 3x3 convolution; each place stands for one pixel."""
    return nn.Sequential(ConvNorm(channels, width, 3)), 1


def basic(width: int, inner: int, stride: int) -> tuple[nn.Module, int]:
    """Two 3x3 convolutions; the width of what they give."""
    return nn.Sequential(ConvNorm(width, inner, 3, stride), ConvNorm(inner, inner, 3, activation=None)), inner


def bottleneck(width: int, inner: int, stride: int) -> tuple[nn.Module, int]:
    """A 3x3 convolution between two 1x1 ones; the width of what they give, four times the inner one.

    As in the public weights, the 3x3 convolution has the stride; in the paper the first one has it.
    """
    outer = 4 * inner
    layers = ConvNorm(width, inner, 1), ConvNorm(inner, inner, 3, stride), ConvNorm(inner, outer, 1, activation=None)
    return nn.Sequential(*layers), outer


def projection(width: int, outer: int, stride: int) -> nn.Module:
    """A 1x1 convolution of the input: option B of the paper."""
    return ConvNorm(width, outer, 1, stride, activation=None)


def pooled_projection(width: int, outer: int, stride: int) -> nn.Module:
    """A 1x1 convolution of means, so that no place of the input is left out."""
    if stride == 1:
        return projection(width, outer, stride)
    return nn.Sequential(nn.AvgPool2d(stride, ceil_mode=True), projection(width, outer, 1))


class ZeroPadding(nn.Module):
    """Every second place of the input, padded by channels of zeros: option A of the paper, without parameters."""

    def __init__(self, width: int, outer: int, stride: int) -> None:
        super().__init__()
        self.added, self.stride = outer - width, stride

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B D i j"]:
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.added))


STEMS = {"7x7": large_stem, "3x3": small_stem, "deep": deep_stem}
BRANCHES = {"basic": basic, "bottleneck": bottleneck}
SHORTCUTS = {"projection": projection, "pooled": pooled_projection, "padding": ZeroPadding}

MODEL, CONFIG = ResNet, ResNetConfig

_DEEP = {"stem": "deep", "shortcut": "pooled"}

_SMALL = {"widths": (16, 32, 64), "stem": "3x3", "shortcut": "padding"}

PRESETS: dict[str, dict[str, Any]] = {
    "resnet18": {},
    "resnet34": {"blocks": (3, 4, 6, 3)},
    "resnet50": {"blocks": (3, 4, 6, 3), "block": "bottleneck"},
    "resnet101": {"blocks": (3, 4, 23, 3), "block": "bottleneck"},
    "resnet152": {"blocks": (3, 8, 36, 3), "block": "bottleneck"},
    "resnet18-vd": _DEEP,
    "resnet34-vd": {**_DEEP, "blocks": (3, 4, 6, 3)},
    "resnet50-vd": {**_DEEP, "blocks": (3, 4, 6, 3), "block": "bottleneck"},
    "resnet101-vd": {**_DEEP, "blocks": (3, 4, 23, 3), "block": "bottleneck"},
    "resnet-light": {"blocks": (1, 1), "widths": (32, 96)},
    "plain34": {"blocks": (3, 4, 6, 3), "shortcut": "none"},
    "resnet14": {"blocks": (2, 2, 2), "widths": (32, 64, 128)},
    "resnet20": {**_SMALL, "blocks": (3, 3, 3)},
    "resnet56": {**_SMALL, "blocks": (9, 9, 9)},
    "plain20": {**_SMALL, "blocks": (3, 3, 3), "shortcut": "none"},
    "plain56": {**_SMALL, "blocks": (9, 9, 9), "shortcut": "none"},
}

IMAGENET = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "plain34")

SIZES: dict[str, dict[str, int]] = {
    **{name: {"classes": 1000} for name in PRESETS if name.startswith(IMAGENET)},
    **{name: {"classes": 10} for name in ("resnet20", "resnet56", "plain20", "plain56")},
}
"""The classes of ImageNet, or of CIFAR-10, which other data replaces."""
