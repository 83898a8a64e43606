"""A conditional GAN with self-attention (SAGAN, Zhang et al. 2019, https://arxiv.org/abs/1805.08318).

Generator and discriminator are residual networks with spectral norm; the generator's batch norm depends on the class,
and the discriminator compares the class with its features (Miyato and Koyama 2018, https://arxiv.org/abs/1802.05637).
"""

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError
from foveate.nn import ConditionalBatchNorm, FeatureMapAttention

BRIGHTEST = 2.0
"""Pixels are numbers from -2 to 2."""


@dataclass
class SAGANConfig:
    """The sizes of a GAN. Defaults are those of the paper."""

    classes: FromData
    """How many classes there are."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    image_size: int = 128
    """Height and width of the images."""
    noise: int = 128
    """Random numbers that an image is generated from."""
    generator: tuple[int, ...] = (1024, 1024, 512, 256, 128, 64)
    """Width of the first feature map, and of each residual block that doubles its height and width."""
    generator_attends_after: tuple[int, ...] = (4,)
    """Blocks that are followed by self-attention, by their numbers from 1."""
    discriminator: tuple[int, ...] = (64, 128, 256, 512, 1024)
    """Width of each residual block that halves height and width."""
    discriminator_attends_after: tuple[int, ...] = (1,)
    """Blocks of the discriminator that are followed by self-attention."""


@dataclass
class GANOutput(Output):
    """`logits` (B, 1) are the discriminator's scores of real images: large for those that seem real."""

    generated: Float[Tensor, "B 1"] = field(kw_only=True)
    """Its scores of generated images. Their gradient reaches the discriminator alone."""
    judged: Float[Tensor, "B 1"] = field(kw_only=True)
    """The same scores. Their gradient reaches the generator alone."""
    scales: dict[str, Tensor] = field(default_factory=dict)
    """The learned scale of each layer of self-attention."""


class SAGAN(nn.Module):
    """A generator, and a discriminator that learns to tell what it generates from real images."""

    def __init__(self, config: SAGANConfig) -> None:
        super().__init__()
        self.config = config
        self.generator = GeneratorNetwork(config)
        self.discriminator = Discriminator(config)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear | nn.Embedding):
                nn.init.xavier_uniform_(module.weight)
        _normalize(self)

    def forward(self, pixels: Float[Tensor, "B c h w"], classes: Int[Tensor, "B"]) -> GANOutput:
        """Scores of real images, and of as many generated ones of the same classes."""
        made = self.generate(classes)
        real = self.discriminator(pixels, classes)
        generated = self.discriminator(made.detach(), classes)
        fixed = {name: value.detach() for name, value in self.discriminator.named_parameters()}
        judged = torch.func.functional_call(self.discriminator, fixed, (made, classes))
        return GANOutput(real, generated=generated, judged=judged, scales=self.attention_scales())

    def generate(self, classes: Int[Tensor, "B"], generator: torch.Generator | None = None) -> Float[Tensor, "B c h w"]:
        """An image of each class, from random numbers."""
        noise = torch.randn(len(classes), self.config.noise, generator=generator, device=classes.device)
        return self.generator(noise, classes)

    def attention_scales(self) -> dict[str, Tensor]:
        """The learned scale of each layer of self-attention, which begins at 0."""
        layers = {name: part for name, part in self.named_modules() if isinstance(part, FeatureMapAttention)}
        return {name.replace(".", "_"): layer.scale.detach() for name, layer in layers.items()}


class GeneratorNetwork(nn.Module):
    """Makes an image of noise and a class."""

    def __init__(self, config: SAGANConfig) -> None:
        super().__init__()
        first, *widths = config.generator
        side, rest = divmod(config.image_size, 2 ** len(widths))
        if rest or not side:
            raise UserError(
                f"images of {config.image_size} pixels cannot be made by doubling {len(widths)} times: "
                f"take another size, or another number of widths in generator"
            )
        self.side = side
        self.project = nn.Linear(config.noise, first * side**2)
        self.blocks, self.attention = nn.ModuleList(), _attention(widths, config.generator_attends_after, "generator")
        width = first
        for outer in widths:
            self.blocks.append(GeneratorBlock(width, outer, config.classes))
            width = outer
        self.norm = nn.BatchNorm2d(width)
        self.output = nn.Conv2d(width, config.channels, 3, padding=1)

    def forward(self, noise: Float[Tensor, "B N"], classes: Int[Tensor, "B"]) -> Float[Tensor, "B c h w"]:
        x = self.project(noise).unflatten(1, (-1, self.side, self.side))
        for number, block in enumerate(self.blocks, 1):
            x = block(x, classes)
            x = self.attention[str(number)](x) if str(number) in self.attention else x
        return BRIGHTEST * torch.tanh(self.output(torch.relu(self.norm(x))))


class GeneratorBlock(nn.Module):
    """A residual block that doubles height and width."""

    def __init__(self, width: int, outer: int, classes: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([ConditionalBatchNorm(width, classes), ConditionalBatchNorm(outer, classes)])
        self.first = nn.Conv2d(width, outer, 3, padding=1)
        self.second = nn.Conv2d(outer, outer, 3, padding=1)
        self.shortcut = nn.Conv2d(width, outer, 1)

    def forward(self, x: Float[Tensor, "B C h w"], classes: Int[Tensor, "B"]) -> Float[Tensor, "B D i j"]:
        y = self.first(_double(torch.relu(self.norms[0](x, classes))))
        y = self.second(torch.relu(self.norms[1](y, classes)))
        return y + _double(self.shortcut(x))  # equals the 1x1 convolution of the doubled map


class Discriminator(nn.Module):
    """An image and a class to a score."""

    def __init__(self, config: SAGANConfig) -> None:
        super().__init__()
        widths = config.discriminator
        self.blocks = nn.ModuleList()
        self.attention = _attention(widths, config.discriminator_attends_after, "discriminator")
        width = config.channels
        for number, outer in enumerate(widths):
            self.blocks.append(DiscriminatorBlock(width, outer, first=number == 0))
            width = outer
        self.output = nn.Linear(width, 1)
        self.embedding = nn.Embedding(config.classes, width)

    def forward(self, pixels: Float[Tensor, "B c h w"], classes: Int[Tensor, "B"]) -> Float[Tensor, "B 1"]:
        x = pixels
        for number, block in enumerate(self.blocks, 1):
            x = block(x)
            x = self.attention[str(number)](x) if str(number) in self.attention else x
        features = torch.relu(x).sum((2, 3))
        return self.output(features) + (self.embedding(classes) * features).sum(1, keepdim=True)


class DiscriminatorBlock(nn.Module):
    """A residual block that halves height and width."""

    def __init__(self, width: int, outer: int, first: bool) -> None:
        """The `first` one reads pixels, which need no activation."""
        super().__init__()
        self.reads_pixels = first
        self.first = nn.Conv2d(width, outer, 3, padding=1)
        self.second = nn.Conv2d(outer, outer, 3, padding=1)
        self.shortcut = nn.Conv2d(width, outer, 1)

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B D i j"]:
        y = self.first(x if self.reads_pixels else torch.relu(x))
        y = self.second(torch.relu(y))
        return F.avg_pool2d(y, 2, ceil_mode=True) + self.shortcut(F.avg_pool2d(x, 2, ceil_mode=True))


def _double(x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C i j"]:
    return F.interpolate(x, scale_factor=2)


def _attention(widths: Any, after: tuple[int, ...], name: str) -> nn.ModuleDict:
    for number in after:
        if number > len(widths):
            raise UserError(f"{name}_attends_after names block {number}, but there are {len(widths)}")
    return nn.ModuleDict({str(number): FeatureMapAttention(widths[number - 1]) for number in after})


def _normalize(model: nn.Module) -> None:
    """Divide the weights of all layers by their largest singular value (Miyato et al. 2018)."""
    for module in [*model.modules()]:
        if isinstance(module, nn.Conv2d | nn.Linear | nn.Embedding):
            spectral_norm(module)


MODEL, CONFIG = SAGAN, SAGANConfig

TINY = {
    "image_size": 28,
    "noise": 64,
    "generator": (48, 32, 16),
    "generator_attends_after": (1,),
    "discriminator": (16, 32, 64),
}

PRESETS: dict[str, dict[str, Any]] = {
    "sagan": {},
    "sagan-tiny": TINY,
    "sagan-tiny-without": {**TINY, "generator_attends_after": (), "discriminator_attends_after": ()},
}

SIZES: dict[str, dict[str, int]] = {"sagan": {"classes": 1000}}
"""The classes of ImageNet, which other data replaces."""
