"""ConvNeXt: a convolutional network with what Vision Transformers changed (Liu et al. 2022).

https://arxiv.org/abs/2201.03545. ConvNeXt V2 (Woo et al. 2023, https://arxiv.org/abs/2301.00808) has response norms in
place of layer scale.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.models.vision.sizes import at_least_pixels, one_for_each_stage
from foveate.nn import ChannelNorm, DepthwiseConv2d, Dropout, ResidualBlock, depth_rates


@dataclass
class ConvNeXtConfig:
    """The sizes of a ConvNeXt. Defaults are those of the tiny one."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    patch: int = 4
    """The first layer divides an image into squares of this many rows and columns and projects each."""
    blocks: tuple[int, ...] = (3, 3, 9, 3)
    """Blocks of each stage. Each stage after the first halves the height and the width of the feature map."""
    widths: tuple[int, ...] = (96, 192, 384, 768)
    """Width of each stage, in channels."""
    response_norm: bool = False
    """Each block normalizes how active its channels are in the whole image, and has no layer scale (ConvNeXt V2)."""
    layer_scale: float = 1e-6
    """What each channel of a block's output is multiplied by at first, before it is added to the input."""
    depth_dropout: float = 0.1
    """Share of images for which the last block is skipped in training; earlier blocks have less (stochastic depth)."""
    dropout: float = 0.0
    """Share of the pooled features that is dropped in training."""
    epsilon: float = 1e-6
    """What the last layer norm adds to the variance."""


class ConvNeXt(nn.Module):
    """Stages of blocks; rows and columns that fill no square of `stride` pixels at the right and the bottom are cut."""

    def __init__(self, config: ConvNeXtConfig) -> None:
        super().__init__()
        self.config = config
        one_for_each_stage(blocks=config.blocks, widths=config.widths)
        rates = iter(depth_rates(config.depth_dropout, sum(config.blocks)))
        self.reductions, self.stages = nn.ModuleList(), nn.ModuleList()
        width, scale = config.channels, None if config.response_norm else config.layer_scale
        for stage, (count, outer) in enumerate(zip(config.blocks, config.widths, strict=True)):
            project = nn.Conv2d(width, outer, side := 2 if stage else config.patch, stride=side)
            parts = (ChannelNorm(width), project) if stage else (project, ChannelNorm(outer))
            self.reductions.append(nn.Sequential(*parts))
            self.stages.append(nn.Sequential(*(block(outer, scale, next(rates)) for _ in range(count))))
            width = outer
        self.grid_widths, self.grid_width, self.stride = (
            config.widths,
            width,
            config.patch * 2 ** (len(config.blocks) - 1),
        )
        self.norm = nn.LayerNorm(width, eps=config.epsilon)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(width, config.classes)
        for layer in self.modules():
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                nn.init.normal_(layer.weight, std=0.02)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N)."""
        return Output(self.output(self.dropout(self.norm(self.grid(pixels).mean((2, 3))))))

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The last feature map."""
        return self.grids(pixels)[-1]

    def grids(self, pixels: Float[Tensor, "B c h w"]) -> list[Float[Tensor, "B _ _ _"]]:
        """The feature map of each stage, `grid_widths` channels wide."""
        at_least_pixels(self.stride, pixels)
        x, found = pixels, []
        for reduction, stage in zip(self.reductions, self.stages, strict=True):
            x = stage(reduction(x))
            found.append(x)
        return found


class Branch(nn.Module):
    """A 7x7 convolution of each channel for itself, layer norm, two layers that mix the channels of each place, and a
    learned scale of each channel (LayerScale, Touvron et al. 2021), or a response norm between the two layers."""

    def __init__(self, width: int, layer_scale: float | None) -> None:
        super().__init__()
        self.convolution = DepthwiseConv2d(width, 7)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.inner = nn.Linear(width, 4 * width)
        self.outer = nn.Linear(4 * width, width)
        self.response = GlobalResponseNorm(4 * width) if layer_scale is None else nn.Identity()
        self.scale = None if layer_scale is None else nn.Parameter(torch.full((width,), layer_scale))

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        x = self.convolution(x).permute(0, 2, 3, 1)
        x = self.outer(self.response(F.gelu(self.inner(self.norm(x)))))
        return (x if self.scale is None else self.scale * x).permute(0, 3, 1, 2)


class GlobalResponseNorm(nn.Module):
    """`x + scale * x * a + bias`, where a is how active a channel is in the whole map, as a multiple of the channels'
    mean (Woo et al. 2023, section 3.2)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = (nn.Parameter(torch.zeros(width)) for _ in range(2))

    def forward(self, x: Float[Tensor, "B h w C"]) -> Float[Tensor, "B h w C"]:
        active = torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True)
        return x + self.weight * x * (active / (active.mean(-1, keepdim=True) + 1e-6)) + self.bias


def block(width: int, layer_scale: float | None, depth_dropout: float) -> nn.Module:
    """`x + branch(x)`."""
    return ResidualBlock(Branch(width, layer_scale), depth_dropout=depth_dropout)


MODEL, CONFIG = ConvNeXt, ConvNeXtConfig

PRESETS: dict[str, dict[str, Any]] = {
    "convnext-tiny": {},
    "convnext-base": {"blocks": (3, 3, 27, 3), "widths": (128, 256, 512, 1024), "depth_dropout": 0.5},
    "convnext-small-images": {"patch": 2, "blocks": (2, 4, 2), "widths": (48, 96, 192), "layer_scale": 1e-2},
}

SIZES: dict[str, dict[str, int]] = {name: {"classes": 1000} for name in ("convnext-tiny", "convnext-base")}
"""The classes of ImageNet, which other data replaces."""
