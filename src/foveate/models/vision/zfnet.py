"""ZFNet: AlexNet with smaller kernels and strides in its first two layers (Zeiler and Fergus 2014).

https://arxiv.org/abs/1311.2901
"""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.models.vision.sizes import at_least_pixels, one_for_each
from foveate.nn import FullyConnectedHead, ResponseNorm, initialize_convolutions


@dataclass
class ZFNetConfig:
    """The sizes of ZFNet. Defaults are those of the paper's figure 3."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    widths: tuple[int, ...] = (96, 256, 384, 384, 256)
    """Width of each of the five convolutions, in channels."""
    kernels: tuple[int, int] = (7, 5)
    """Height and width of the kernels of the first two convolutions."""
    steps: tuple[int, int] = (2, 2)
    """Strides of the first two convolutions."""
    side: int = 6
    """The classifier reads the feature map averaged to this many rows and columns."""
    hidden: int = 4096
    """Width of the two hidden layers of the classifier."""
    dropout: float = 0.5
    """Share of the hidden layers that is dropped in training."""


class ZFNet(nn.Module):
    """At the paper's sizes it reads images of at least 47 x 47 pixels; made for 224 x 224."""

    def __init__(self, config: ZFNetConfig) -> None:
        super().__init__()
        self.config = config
        one_for_each("convolution", 5, "widths", config.widths)
        first, second, third, fourth, fifth = config.widths
        (kernel, step), (next_kernel, next_step) = zip(config.kernels, config.steps, strict=True)
        pool, norm = nn.MaxPool2d(3, stride=2, ceil_mode=True), ResponseNorm()
        self.features = nn.Sequential(
            *(nn.Conv2d(config.channels, first, kernel, stride=step, padding=1), nn.ReLU(), pool, norm),
            *(nn.Conv2d(first, second, next_kernel, stride=next_step), nn.ReLU(), pool, norm),
            *(nn.Conv2d(second, third, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(third, fourth, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(fourth, fifth, 3, padding=1), nn.ReLU(), pool),
        )
        self.grid_width, self.stride = fifth, 8 * step * next_step
        pooled = 3 * next_step + next_kernel  # what gives the last pooling two rows
        self.least = (2 * pooled - 1) * step + kernel - 2
        self.head = FullyConnectedHead(fifth, config.side, config.hidden, config.classes, config.dropout)
        initialize_convolutions(self)

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N)."""
        return Output(self.head(self.grid(pixels)))

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The last feature map."""
        at_least_pixels(self.least, pixels)
        return self.features(pixels)


MODEL, CONFIG = ZFNet, ZFNetConfig

PRESETS: dict[str, dict[str, Any]] = {
    "zfnet": {},
    "zfnet-small-images": {
        "widths": (64, 128, 192, 128, 128),
        "kernels": (5, 5),
        "steps": (1, 1),
        "side": 2,
        "hidden": 256,
        "dropout": 0.0,
    },
}

SIZES: dict[str, dict[str, int]] = {"zfnet": {"classes": 1000}}
"""The classes of ImageNet, which other data replaces."""
