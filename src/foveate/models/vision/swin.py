"""Swin: a vision Transformer that attends within shifted windows (Liu et al. 2021, https://arxiv.org/abs/2103.14030).

Swin V2 (Liu et al. 2022, https://arxiv.org/abs/2111.09883) scores by cosines, computes positions from offsets, and
normalizes what a layer adds, and what is merged, not what they read.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import check_literals
from foveate.models.vision.sizes import divide_into, one_for_each_stage
from foveate.nn import Dropout, FeedForward, Residual, WindowAttention, depth_rates, initialize


@dataclass
class SwinConfig:
    """The sizes of a Swin Transformer. Defaults are those of the tiny one."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    patch: int = 4
    """Height and width of a patch, in pixels. Each patch is projected to one vector."""
    width: int = 96
    """Width of the first stage; each further stage is twice as wide as the one before."""
    blocks: tuple[int, ...] = (2, 2, 6, 2)
    """Blocks of each stage. Each stage after the first halves the rows and columns of the feature map."""
    head_width: int = 32
    """Width of each attention head."""
    version: Literal["v1", "v2"] = "v1"
    """The first paper's blocks, or those of Swin V2."""
    trained_windows: tuple[int, ...] | None = None
    """Swin V2: rows and columns of each stage's windows that positions were trained with; by default those here."""
    window: int = 7
    """Rows and columns of a window. In every second block windows are shifted by half of it."""
    last_norm: bool = True
    """Normalize the last feature map (Donut does not)."""
    expansion: int = 4
    """How many times wider than a stage its feed-forward layers are inside."""
    dropout: float = 0.0
    """Share of embeddings and layer outputs that is dropped in training."""
    attention_dropout: float = 0.0
    """Share of attention weights that is dropped in training."""
    depth_dropout: float = 0.2
    """Share of images for which the last block is skipped in training; earlier blocks have less (stochastic depth)."""


class Swin(nn.Module):
    """Reads images of any size; they are padded by zeros where patches, windows and stages do not divide them."""

    def __init__(self, config: SwinConfig) -> None:
        super().__init__()
        self.config = config
        check_literals(config)
        divide_into(config.head_width, "width", (config.width,))
        if config.trained_windows is not None:
            one_for_each_stage(blocks=config.blocks, trained_windows=config.trained_windows)
        widths = [config.width * 2**stage for stage in range(len(config.blocks))]
        rates = iter(depth_rates(config.depth_dropout, sum(config.blocks)))
        self.grid_widths, self.grid_width, self.stride = widths, widths[-1], config.patch * 2 ** (len(widths) - 1)
        self.patches = nn.Conv2d(config.channels, config.width, config.patch, stride=config.patch)
        self.patch_norm = nn.LayerNorm(config.width)
        self.dropout = Dropout(config.dropout)
        self.mergers = nn.ModuleList(PatchMerging(width, config.version == "v1") for width in widths[:-1])
        self.stages = nn.ModuleList(
            nn.Sequential(*(block(config, stage, number, next(rates)) for number in range(count)))
            for stage, count in enumerate(config.blocks)
        )
        self.norm = nn.LayerNorm(widths[-1]) if config.last_norm else nn.Identity()
        self.output = nn.Linear(widths[-1], config.classes)
        initialize(self, config.width)
        nn.init.xavier_uniform_(self.patches.weight.flatten(1))  # it is a linear layer of the pixels of a patch

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N)."""
        return Output(self.output(self.grid(pixels).mean((2, 3))))

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The last feature map."""
        return self.grids(pixels)[-1]

    def grids(self, pixels: Float[Tensor, "B c h w"]) -> list[Float[Tensor, "B _ _ _"]]:
        """The feature map of each stage, `grid_widths` channels wide; the last norm is that of the last one alone."""
        x = self.patches(pad_to(pixels.permute(0, 2, 3, 1), self.config.patch).permute(0, 3, 1, 2))
        x = self.dropout(self.patch_norm(x.permute(0, 2, 3, 1)))
        found = []
        for number, stage in enumerate(self.stages):
            x = stage(self.mergers[number - 1](x) if number else x)
            found.append(x)
        return [one.permute(0, 3, 1, 2) for one in (*found[:-1], self.norm(x))]


class SwinBlock(nn.Module):
    """Self-attention within windows, then a feed-forward layer."""

    def __init__(self, attention: WindowAttention, feedforward: FeedForward, residual: partial[Residual]) -> None:
        super().__init__()
        self.self = attention
        self.feedforward = feedforward
        self.around_self, self.around_feedforward = residual(), residual()

    def forward(self, x: Float[Tensor, "B h w C"]) -> Float[Tensor, "B h w C"]:
        return self.around_feedforward(self.around_self(x, self.self), self.feedforward)


class PatchMerging(nn.Module):
    """Four neighbours become one place of twice their width (section 3.1), normalized before or afterwards."""

    def __init__(self, width: int, norm_first: bool) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.norm = nn.LayerNorm((4 if norm_first else 2) * width)
        self.reduction = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Float[Tensor, "B h w C"]) -> Float[Tensor, "B i j D"]:
        x = pad_to(x, 2)
        # Column by column, as the public weights have it.
        neighbours = [x[:, row::2, column::2] for column in range(2) for row in range(2)]
        merged = torch.cat(neighbours, -1)
        return self.reduction(self.norm(merged)) if self.norm_first else self.norm(self.reduction(merged))


def pad_to(x: Float[Tensor, "B h w C"], multiple: int) -> Float[Tensor, "B i j C"]:
    """Zeros at the right and the bottom, so that height and width are multiples of a number."""
    return F.pad(x, (0, 0, 0, -x.shape[2] % multiple, 0, -x.shape[1] % multiple))


def block(config: SwinConfig, stage: int, number: int, depth_dropout: float) -> SwinBlock:
    """A block of a stage: in every second one the windows are shifted."""
    width, shift = config.width * 2**stage, config.window // 2 if number % 2 else 0
    heads, second = width // config.head_width, config.version == "v2"
    trained = None if config.trained_windows is None else config.trained_windows[stage]
    return SwinBlock(
        WindowAttention(width, heads, config.window, shift, config.attention_dropout, second, trained),
        FeedForward(width, config.expansion * width, "gelu", config.dropout),
        partial(Residual, width, "output" if second else "pre", config.dropout, depth_dropout=depth_dropout),
    )


MODEL, CONFIG = Swin, SwinConfig

TRAINED = {"learning_rate": 1e-3, "schedule": "cosine", "weight_decay": 0.05, "betas": (0.9, 0.999)}

PRESETS: dict[str, dict[str, Any]] = {
    "swin-tiny": {},
    "swin-base": {"width": 128, "blocks": (2, 2, 18, 2), "depth_dropout": 0.5},
    "swin-nano": {"patch": 2, "width": 48, "blocks": (2, 4), "head_width": 16, "depth_dropout": 0.0},
}

TRAINING = {
    "swin-tiny": TRAINED,
    "swin-base": TRAINED,
    "swin-nano": TRAINED,
}
"""The settings of training that suit a preset, where they differ from its task's."""

SIZES: dict[str, dict[str, int]] = {name: {"classes": 1000} for name in ("swin-tiny", "swin-base")}
"""The classes of ImageNet, which other data replaces."""
