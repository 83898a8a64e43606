"""GoogLeNet: modules of parallel convolutions with kernels of several sizes (Szegedy et al. 2015).

https://arxiv.org/abs/1409.4842
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.models.vision.sizes import at_least_pixels
from foveate.nn import ConvNorm, Dropout, ResponseNorm, initialize_convolutions

INCEPTIONS = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}
"""The widths in each module (table 1): of the 1x1 convolution, of the 3x3 convolution's reduction and its own, of the
5x5 convolution's reduction and its own, and of the projection of what max pooling gives."""

Layer = Callable[..., nn.Module]
"""What makes a convolution with its activation, of a width, an outer width, a kernel and a stride."""


@dataclass
class GoogLeNetConfig:
    """The sizes of GoogLeNet. Defaults are those of the paper."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    norm: Literal["response", "batch"] = "response"
    """What normalizes: two layers of response normalization, as in the paper, or batch norm after each convolution,
    which makes training much faster (Ioffe and Szegedy 2015)."""
    stem: Literal["7x7", "3x3"] = "7x7"
    """The first layers reduce an image to an eighth of its size, or, for small images, to a half."""
    auxiliary: bool = False
    """Whether two more classifiers read modules 4a and 4d in training."""
    divisor: int = 1
    """All widths of the paper are divided by this number."""
    wide_kernel: int = 5
    """Rows and columns of the widest kernels in a module: 5 in the paper, 3 in the public weights."""
    last_pool: int = 3
    """Rows and columns that the last max pooling reads: 3 in the paper, 2 in the public weights."""
    dropout: float = 0.4
    """Share of the pooled features that is dropped in training."""
    auxiliary_dropout: float = 0.7
    """Share of the auxiliary classifiers' hidden layer that is dropped in training."""


class GoogLeNet(nn.Module):
    """Nine inception modules; max pooling halves the feature map before 4a and 5a. Made for 224 x 224 pixels."""

    def __init__(self, config: GoogLeNetConfig) -> None:
        super().__init__()
        self.config = config
        layer = LAYERS[config.norm]
        width = max(1, 192 // config.divisor)
        self.stem = STEMS[config.stem](config, layer, max(1, 64 // config.divisor), width)
        reduction, least = {"7x7": 8, "3x3": 2}[config.stem], 2 * max(1, config.last_pool - 1)
        self.stride = 4 * reduction
        self.least = reduction * least - (config.stem == "7x7")
        """Max pooling needs images of as many rows and columns."""
        self.inceptions, self.auxiliary = nn.ModuleDict(), nn.ModuleDict()
        for name, widths in INCEPTIONS.items():
            module = Inception(width, [max(1, each // config.divisor) for each in widths], config.wide_kernel, layer)
            self.inceptions[name], width = module, module.width
            if config.auxiliary and name in ("4a", "4d"):
                self.auxiliary[name] = AuxiliaryClassifier(width, config, layer)
        self.pools = nn.ModuleDict({"4a": pool(3), "5a": pool(config.last_pool)})
        self.grid_width = width
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(width, config.classes)
        initialize_convolutions(self)

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N); in training, those of the auxiliary classifiers too."""
        maps = self._maps(pixels)
        auxiliary = tuple(head(maps[name]) for name, head in self.auxiliary.items()) if self.training else ()
        return Output(self.output(self.dropout(maps["5b"].mean((2, 3)))), auxiliary=auxiliary)

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The last feature map."""
        return self._maps(pixels)["5b"]

    def _maps(self, pixels: Tensor) -> dict[str, Tensor]:
        """Returns the output of each inception module."""
        at_least_pixels(self.least, pixels)
        x, found = self.stem(pixels), {}
        for name, module in self.inceptions.items():
            x = module(self.pools[name](x) if name in self.pools else x)
            found[name] = x
        return found


class Inception(nn.Module):
    """Convolutions of three sizes and max pooling beside each other; what they give is concatenated (figure 2b)."""

    def __init__(self, width: int, widths: list[int], wide_kernel: int, layer: Layer) -> None:
        super().__init__()
        direct, reduced, middle, more_reduced, wide, pooled = widths
        self.branches = nn.ModuleList(
            [
                nn.Sequential(layer(width, direct, 1)),
                nn.Sequential(layer(width, reduced, 1), layer(reduced, middle, 3)),
                nn.Sequential(layer(width, more_reduced, 1), layer(more_reduced, wide, wide_kernel)),
                nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1), layer(width, pooled, 1)),
            ]
        )
        self.width = direct + middle + wide + pooled

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B D h w"]:
        return torch.cat([branch(x) for branch in self.branches], 1)


class AuxiliaryClassifier(nn.Module):
    """Classifies an earlier feature map, so that gradients reach the first layers by a shorter way (section 5)."""

    def __init__(self, width: int, config: GoogLeNetConfig, layer: Layer) -> None:
        super().__init__()
        reduced, hidden = (max(1, each // config.divisor) for each in (128, 1024))
        self.reduction = layer(width, reduced, 1)
        self.hidden = nn.Linear(reduced * 4 * 4, hidden)
        self.dropout = Dropout(config.auxiliary_dropout)
        self.output = nn.Linear(hidden, config.classes)

    def forward(self, grid: Float[Tensor, "B C h w"]) -> Float[Tensor, "B N"]:
        x = self.reduction(F.adaptive_avg_pool2d(grid, 4)).flatten(1)
        return self.output(self.dropout(F.relu(self.hidden(x))))


def large_stem(config: GoogLeNetConfig, layer: Layer, width: int, outer: int) -> nn.Module:
    """Convolutions and max pooling to an eighth of the image's size."""
    norm = ResponseNorm() if config.norm == "response" else nn.Identity()
    first = layer(config.channels, width, 7, 2), pool(3), norm
    return nn.Sequential(*first, layer(width, width, 1), layer(width, outer, 3), norm, pool(3))


def small_stem(config: GoogLeNetConfig, layer: Layer, width: int, outer: int) -> nn.Module:
    """A 3x3 convolution and max pooling to half the image's size."""
    return nn.Sequential(layer(config.channels, outer, 3), pool(3))


def pool(side: int) -> nn.Module:
    """Max pooling to half the size, rounded up."""
    return nn.MaxPool2d(side, stride=2, ceil_mode=True)


def plain_layer(width: int, outer: int, kernel: int, stride: int = 1) -> nn.Module:
    """A convolution and ReLU."""
    return nn.Sequential(nn.Conv2d(width, outer, kernel, stride, padding=kernel // 2), nn.ReLU())


def batch_norm_layer(width: int, outer: int, kernel: int, stride: int = 1) -> nn.Module:
    """A convolution, batch norm and ReLU, with the constant of the public weights."""
    return ConvNorm(width, outer, kernel, stride, eps=1e-3)


STEMS = {"7x7": large_stem, "3x3": small_stem}
LAYERS = {"response": plain_layer, "batch": batch_norm_layer}

MODEL, CONFIG = GoogLeNet, GoogLeNetConfig

PRESETS: dict[str, dict[str, Any]] = {
    "googlenet": {},
    "googlenet-batch-norm": {"norm": "batch", "wide_kernel": 3, "last_pool": 2, "dropout": 0.2},
    "googlenet-small-images": {"norm": "batch", "stem": "3x3", "divisor": 4, "dropout": 0.2},
}

SIZES: dict[str, dict[str, int]] = {name: {"classes": 1000} for name in ("googlenet", "googlenet-batch-norm")}
"""The classes of ImageNet, which other data replaces."""
