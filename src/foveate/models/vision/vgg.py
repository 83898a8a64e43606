"""VGG: stages of 3x3 convolutions, max pooling between them (Simonyan and Zisserman 2015).

https://arxiv.org/abs/1409.1556
"""

from dataclasses import dataclass
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.models.vision.sizes import at_least_pixels, one_for_each_stage
from foveate.nn import ConvNorm, FullyConnectedHead, initialize_convolutions


@dataclass
class VGGConfig:
    """The sizes of a VGG network. Defaults are those of the one with 16 layers."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    blocks: tuple[int, ...] = (2, 2, 3, 3, 3)
    """Convolutions of each stage. After each stage max pooling halves the height and the width."""
    widths: tuple[int, ...] = (64, 128, 256, 512, 512)
    """Width of each stage's convolutions, in channels."""
    norm: Literal["none", "batch"] = "none"
    """What normalizes the output of each convolution. The paper has nothing; batch norm makes training much faster."""
    side: int = 7
    """The classifier reads the feature map averaged to this many rows and columns."""
    hidden: int = 4096
    """Width of the two hidden layers of the classifier."""
    dropout: float = 0.5
    """Share of the hidden layers that is dropped in training."""


class VGG(nn.Module):
    """Images need a pixel for each place of the last feature map: 32 x 32 for five stages; made for 224 x 224."""

    def __init__(self, config: VGGConfig) -> None:
        super().__init__()
        self.config = config
        one_for_each_stage(blocks=config.blocks, widths=config.widths)
        layer = LAYERS[config.norm]
        self.stages = nn.ModuleList()
        width = config.channels
        for count, outer in zip(config.blocks, config.widths, strict=True):
            inputs = [width] + [outer] * (count - 1)
            self.stages.append(nn.Sequential(*(layer(each, outer) for each in inputs), nn.MaxPool2d(2)))
            width = outer
        self.grid_width, self.stride = width, 2 ** len(config.blocks)
        self.head = FullyConnectedHead(width, config.side, config.hidden, config.classes, config.dropout)
        initialize_convolutions(self)

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N)."""
        return Output(self.head(self.grid(pixels)))

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The last feature map."""
        at_least_pixels(self.stride, pixels)
        x = pixels
        for stage in self.stages:
            x = stage(x)
        return x


def plain_layer(width: int, outer: int) -> nn.Module:
    """A 3x3 convolution and ReLU."""
    return nn.Sequential(nn.Conv2d(width, outer, 3, padding=1), nn.ReLU())


def batch_norm_layer(width: int, outer: int) -> nn.Module:
    """A 3x3 convolution, batch norm and ReLU."""
    return ConvNorm(width, outer, 3)


LAYERS = {"none": plain_layer, "batch": batch_norm_layer}

MODEL, CONFIG = VGG, VGGConfig

PRESETS: dict[str, dict[str, Any]] = {
    "vgg16": {},
    "vgg19": {"blocks": (2, 2, 4, 4, 4)},
    "vgg-small-images": {
        "blocks": (1, 1, 2, 2),
        "widths": (32, 64, 128, 128),
        "norm": "batch",
        "side": 1,
        "hidden": 256,
    },
}

SIZES: dict[str, dict[str, int]] = {name: {"classes": 1000} for name in ("vgg16", "vgg19")}
"""The classes of ImageNet, which other data replaces."""
