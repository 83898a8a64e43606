"""Image GPT: an image is a sequence of pixels of few colours, each predicted from those before it (Chen et al. 2020,
https://cdn.openai.com/papers/Generative_Pretraining_from_Pixels_V2.pdf)."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import causal
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError, check_literals
from foveate.nn import HeadFields, StackConfig, TransformerStack, initialize_language_model, stack_heads


@dataclass
class ImageGPTConfig(HeadFields):
    """The sizes of an Image GPT. Defaults are those of the small one."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    image_size: int = 32
    """Height and width of the images."""
    colours: int = 512
    """Colours that pixels are rounded to: a power of as many levels as each channel has."""
    width: int = 512
    """Width C of all layers."""
    heads: int = 8
    """Attention heads of each layer."""
    feedforward: int = 2048
    """Inner width of the feed-forward layers."""
    layers: int = 24
    """Blocks of self-attention and a feed-forward layer."""
    predict: Literal["label", "pixels"] = "label"
    """The class of an image, from the mean over all pixels, or each pixel from those before it (pre-training)."""
    epsilon: float = 1e-5
    """What norms add to the mean square."""
    dropout: float = 0.0
    """Share of embeddings and layer outputs that is dropped in training."""


class ImageGPT(nn.Module):
    """Reads images of one size, pixel by pixel, row by row. `palette` (N, c) has the colours; it is not a parameter."""

    palette: Tensor

    def __init__(self, config: ImageGPTConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config, self.grid_width, self.stride = config, config.width, 1
        self.register_buffer("palette", even_palette(config.colours, config.channels))
        self.embedding = nn.Embedding(config.colours + 1, config.width)  # the last one is what an image starts with
        self.stack = TransformerStack(
            StackConfig(
                width=config.width,
                **stack_heads(config),
                window=config.window,
                feedforward=config.feedforward,
                layers=config.layers,
                norm="pre",
                norm_kind="rms",
                epsilon=config.epsilon,
                activation="gelu-sigmoid",
                positions="learned",
                max_length=config.image_size**2,
                dropout=config.dropout,
            )
        )
        outputs = config.classes if config.predict == "label" else config.colours
        self.output = nn.Linear(config.width, outputs, bias=False)
        initialize_language_model(self, config.layers)

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N), or of the colour of each pixel, (B, h*w, N)."""
        colours = self.quantize(pixels).flatten(1)
        if self.config.predict == "label":
            return Output(self.output(self.hidden(colours).mean(1)))
        start = colours.new_full((len(colours), 1), self.config.colours)
        return Output(self.output(self.hidden(torch.cat([start, colours[:, :-1]], 1))))

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C h w"]:
        """Returns the hidden state at each pixel."""
        return self.hidden(self.quantize(pixels).flatten(1)).mT.unflatten(2, pixels.shape[2:])

    def hidden(self, colours: Int[Tensor, "B T"]) -> Float[Tensor, "B T C"]:
        """The hidden states of a sequence of colours, each in the light of those before it."""
        return self.stack(self.embedding(colours), causal())

    def quantize(self, pixels: Float[Tensor, "B c h w"]) -> Int[Tensor, "B h w"]:
        """The number of the nearest colour of each pixel. Raises UserError for images of another size."""
        size = self.config.image_size
        if tuple(pixels.shape[2:]) != (size, size):
            height, width = pixels.shape[2:]
            raise UserError(f"images of {height} x {width} pixels are not of this model's size, {size} x {size}")
        # Of the squared distance, without what is the same for all colours.
        return (self.palette.square().sum(1) - 2 * pixels.movedim(1, -1) @ self.palette.T).argmin(-1)


def even_palette(colours: int, channels: int) -> Float[Tensor, "N c"]:
    """Colours evenly spaced in each channel, from -2 to 2, as pixels are.

    Raises UserError unless each channel has the same number of levels, two or more.
    """
    levels = round(colours ** (1 / channels))
    if levels**channels != colours or levels < 2:
        raise UserError(f"colours is {colours}, but must be a power of levels: {channels} channels of 2, 3, ... levels")
    each = torch.linspace(-2, 2, levels)
    return torch.cartesian_prod(*[each] * channels).reshape(colours, channels)


MODEL, CONFIG = ImageGPT, ImageGPTConfig

PRESETS: dict[str, dict[str, Any]] = {
    "imagegpt-small": {},
    "imagegpt-tiny": {
        "image_size": 14,
        "colours": 8,
        "channels": 1,
        "width": 64,
        "heads": 4,
        "feedforward": 256,
        "layers": 4,
    },
}

SIZES: dict[str, dict[str, int]] = {"imagegpt-small": {"classes": 1000}}
"""The classes of ImageNet, which other data replaces."""

TRAINING = {
    "imagegpt-tiny": {"learning_rate": 2e-3, "schedule": "cosine", "weight_decay": 0.05, "betas": (0.9, 0.95)},
}
"""The settings of training that suit a preset, where they differ from its task's."""
