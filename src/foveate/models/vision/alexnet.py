"""AlexNet: five convolutions and three fully connected layers (Krizhevsky et al. 2012, NIPS 25).

https://papers.nips.cc/paper/2012/hash/c399862d3b9d6b76c8436e924a68c45b-Abstract.html
"""

from dataclasses import dataclass
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.models.vision.sizes import at_least_pixels, divide_into, one_for_each
from foveate.nn import FullyConnectedHead, ResponseNorm, initialize_convolutions


@dataclass
class AlexNetConfig:
    """The sizes of AlexNet. Defaults are those of the paper."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    widths: tuple[int, ...] = (96, 256, 384, 384, 256)
    """Width of each of the five convolutions, in channels."""
    kernel: int = 11
    """Height and width of the first convolution's kernel, in pixels."""
    step: int = 4
    """Stride of the first convolution, in pixels."""
    towers: int = 2
    """Parts that the second, fourth and fifth convolution are divided into. Each part reads its own part of the layer
    before it, as on the two GPUs of the paper."""
    norm: Literal["response", "none"] = "response"
    """Whether the first two layers are divided by how active their neighbouring channels are."""
    side: int = 6
    """The classifier reads the feature map averaged to this many rows and columns."""
    hidden: int = 4096
    """Width of the two hidden layers of the classifier."""
    dropout: float = 0.5
    """Share of the hidden layers that is dropped in training."""


class AlexNet(nn.Module):
    """At the paper's sizes it reads images of at least 63 x 63 pixels; made for 224 x 224."""

    def __init__(self, config: AlexNetConfig) -> None:
        super().__init__()
        self.config = config
        one_for_each("convolution", 5, "widths", config.widths)
        divide_into(config.towers, "widths", config.widths)
        first, second, third, fourth, fifth = config.widths
        towers, pool = config.towers, nn.MaxPool2d(3, stride=2)
        norm = ResponseNorm() if config.norm == "response" else nn.Identity()
        self.features = nn.Sequential(
            *(nn.Conv2d(config.channels, first, config.kernel, stride=config.step, padding=2), nn.ReLU(), norm, pool),
            *(nn.Conv2d(first, second, 5, padding=2, groups=towers), nn.ReLU(), norm, pool),
            *(nn.Conv2d(second, third, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(third, fourth, 3, padding=1, groups=towers), nn.ReLU()),
            *(nn.Conv2d(fourth, fifth, 3, padding=1, groups=towers), nn.ReLU(), pool),
        )
        self.grid_width, self.stride = fifth, 8 * config.step
        self.least = 14 * config.step + config.kernel - 4  # one place after three poolings
        self.head = FullyConnectedHead(fifth, config.side, config.hidden, config.classes, config.dropout)
        initialize_convolutions(self)

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N)."""
        return Output(self.head(self.grid(pixels)))

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The last feature map."""
        at_least_pixels(self.least, pixels)
        return self.features(pixels)


MODEL, CONFIG = AlexNet, AlexNetConfig

PRESETS: dict[str, dict[str, Any]] = {
    "alexnet": {},
    "alexnet-one-tower": {"widths": (64, 192, 384, 256, 256), "towers": 1, "norm": "none"},
    "alexnet-small-images": {
        "widths": (64, 128, 192, 128, 128),
        "kernel": 5,
        "step": 1,
        "norm": "none",
        "side": 2,
        "hidden": 256,
        "dropout": 0.0,
    },
}

SIZES: dict[str, dict[str, int]] = {name: {"classes": 1000} for name in ("alexnet", "alexnet-one-tower")}
"""The classes of ImageNet, which other data replaces."""
