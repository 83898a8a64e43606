"""A small convolutional classifier, with or without self-attention between the places of a feature map.

The attention layer is that of SAGAN (Zhang et al. 2019, https://arxiv.org/abs/1805.08318).
"""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError
from foveate.models.vision.sizes import one_for_each_stage
from foveate.nn import ConvNorm, Dropout, FeatureMapAttention, initialize_convolutions


@dataclass
class CNNConfig:
    """The sizes of a small convolutional network."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    blocks: tuple[int, ...] = (2, 2, 2)
    """3x3 convolutions of each stage. Before each stage but the first max pooling halves the height and the width."""
    widths: tuple[int, ...] = (32, 64, 128)
    """Width of each stage's convolutions, in channels."""
    attend_after: tuple[int, ...] = ()
    """Stages that are followed by self-attention, by their numbers from 1."""
    dropout: float = 0.0
    """Share of the pooled features that is dropped in training."""


class CNN(nn.Module):
    """Stages of convolutions; the mean of the last feature map is classified."""

    def __init__(self, config: CNNConfig) -> None:
        super().__init__()
        self.config = config
        one_for_each_stage(blocks=config.blocks, widths=config.widths)
        for number in config.attend_after:
            if number > len(config.blocks):
                raise UserError(f"attend_after names stage {number}, but there are {len(config.blocks)}")
        self.stages = nn.ModuleList()
        width = config.channels
        for number, (count, outer) in enumerate(zip(config.blocks, config.widths, strict=True), 1):
            stage = nn.Sequential(*([nn.MaxPool2d(2, ceil_mode=True)] if number > 1 else []))
            for _ in range(count):
                stage.append(ConvNorm(width, outer, 3))
                width = outer
            if number in config.attend_after:
                stage.append(FeatureMapAttention(width))
            self.stages.append(stage)
        self.grid_width, self.stride = width, 2 ** (len(config.blocks) - 1)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(width, config.classes)
        initialize_convolutions(self)

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N)."""
        return Output(self.output(self.dropout(self.grid(pixels).mean((2, 3)))))

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The last feature map."""
        x = pixels
        for stage in self.stages:
            x = stage(x)
        return x


MODEL, CONFIG = CNN, CNNConfig

PRESETS: dict[str, dict[str, Any]] = {
    "cnn-tiny": {},
    "cnn-attentive-tiny": {"attend_after": (2,)},
}
