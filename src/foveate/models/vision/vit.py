"""The vision Transformer: an image is a sequence of patches (Dosovitskiy et al. 2021, https://arxiv.org/abs/2010.11929).

DeiT III (Touvron et al. 2022, https://arxiv.org/abs/2204.07118) adds layer scale and gives the class token no position.
With a `cnn` it is the paper's hybrid: the places of a convolutional network's feature map are the patches.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import grid_window
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError, check_literals
from foveate.models.vision.image_encoder import image_encoder
from foveate.models.vision.sizes import into_patches
from foveate.nn import HeadFields, MultiHeadAttention, StackConfig, TransformerStack, initialize


@dataclass
class ViTConfig(HeadFields):
    """The sizes of a vision Transformer. Defaults are those of ViT-Base with patches of 16 x 16 pixels."""

    classes: FromData
    """How many classes there are to decide between."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    image_size: int = 224
    """Height and width of the images that positions are learned for. For other sizes they are interpolated."""
    patch: int = 16
    """Height and width of a patch, in pixels or in places of the CNN's map. Each is projected to one vector."""
    cnn: str | None = None
    """Preset of a convolutional network whose feature map is divided into patches, in place of the image."""
    width: int = 768
    """Width C of all layers."""
    heads: int = 12
    """Attention heads of each layer."""
    feedforward: int = 3072
    """Inner width of the feed-forward layers."""
    layers: int = 12
    """Blocks of self-attention and a feed-forward layer."""
    pooling: Literal["token", "mean", "attention"] = "token"
    """What the classifier reads: a class token beside the patches, the mean of the patches, or the result of multi-head
    attention to them with a learned query (Zhai et al. 2022, https://arxiv.org/abs/2106.04560)."""
    positions: Literal["learned", "sinusoidal", "none"] = "learned"
    """A learned vector for each place, waves along the sequence of patches, or no positions."""
    class_position: bool = True
    """Whether the class token has a learned position as the patches do, if these have learned ones."""
    layer_scale: float | None = None
    """Initial value of a learned scale of each channel of each layer's output; None for no such scale."""
    epsilon: float = 1e-6
    """What layer norms add to the variance."""
    dropout: float = 0.0
    """Share of embeddings and layer outputs that is dropped in training."""
    attention_dropout: float = 0.0
    """Share of attention weights that is dropped in training."""
    depth_dropout: float = 0.0
    """Share of images for which a layer is skipped in training (stochastic depth), the same for all layers."""


class ViT(nn.Module):
    """Reads images whose height and width are multiples of the patch's."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config, width = config, config.width
        cnn: Any = None if config.cnn is None else image_encoder(config.cnn, config.channels, config.image_size)
        self.cnn = cnn
        read, step = (config.channels, 1) if self.cnn is None else (self.cnn.grid_width, self.cnn.stride)
        self.grid_width, self.stride = width, config.patch * step
        if self.cnn is None and config.image_size % config.patch:
            below = config.image_size // config.patch * config.patch
            near = f"{below} or {below + config.patch}" if below else config.patch
            raise UserError(f"image_size {config.image_size} is not a multiple of patch {config.patch}: use {near}")
        self.patches = nn.Conv2d(read, width, config.patch, stride=config.patch)
        token = config.pooling == "token"
        self.class_token = nn.Parameter(torch.empty(1, 1, width)) if token else None
        learned = config.positions == "learned"
        self.with_position, self.side = (
            int(learned and token and config.class_position),
            -(-config.image_size // self.stride),
        )
        places = self.with_position + self.side**2
        self.positions = nn.Parameter(torch.empty(1, places, width)) if learned else None
        self.stack = TransformerStack(stack_config(config))
        self.pool = AttentionPool(width, config.heads) if config.pooling == "attention" else None
        self.output = nn.Linear(width, config.classes)
        self._initialize()

    def _initialize(self) -> None:
        initialize(self, self.config.width)
        nn.init.xavier_uniform_(self.patches.weight.flatten(1))  # it is a linear layer of the pixels of a patch
        if self.patches.bias is not None:
            nn.init.zeros_(self.patches.bias)
        for parameter in (self.positions, self.class_token):
            if parameter is not None:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N)."""
        encoded = self.encode(pixels)
        if self.pool is not None:
            pooled = self.pool(encoded)
        else:
            pooled = encoded.mean(1) if self.class_token is None else encoded[:, 0]
        return Output(self.output(pooled))

    def grid(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The encoded patches as a feature map, without the class token."""
        patches = self.embed(pixels)
        rows, columns = patches.shape[2:]
        return self._encode(patches)[:, -rows * columns :].mT.unflatten(2, (rows, columns))

    def encode(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B T C"]:
        """The encoded class token, if there is one, and the patches row by row."""
        return self._encode(self.embed(pixels))

    def embed(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B C i j"]:
        """The projected patches, without positions."""
        if self.config.patch > 1:
            into_patches(self.stride, pixels)
        return self.patches(pixels if self.cnn is None else self.cnn.grid(pixels))

    def _encode(self, patches: Float[Tensor, "B C i j"]) -> Float[Tensor, "B T C"]:
        x = patches.flatten(2).mT
        first: Tensor | None = self.class_token
        if self.positions is not None:
            token, places = self.interpolate_positions(self.positions, *patches.shape[2:])
            x = x + places
            first = first + token if first is not None and self.with_position else first
        if first is not None:
            x = torch.cat([first.expand(len(x), -1, -1), x], 1)
        radius, tokens = self.config.window, int(first is not None)
        near = None if radius is None else grid_window(radius, patches.shape[3], tokens)
        return self.stack(x, near)

    def interpolate_positions(
        self, positions: Float[Tensor, "1 N C"], rows: int, columns: int
    ) -> tuple[Float[Tensor, "1 t C"], Float[Tensor, "1 T C"]]:
        """The position of the class token, if it has one, and those of `rows` x `columns` patches."""
        token, places = positions.tensor_split([self.with_position], 1)
        if (rows, columns) == (self.side, self.side):
            return token, places
        square = places.mT.unflatten(2, (self.side, self.side))
        return token, F.interpolate(square, (rows, columns), mode="bicubic", align_corners=False).flatten(2).mT


class AttentionPool(nn.Module):
    """Multi-head attention to a sequence with one learned query."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(1, 1, width))
        nn.init.normal_(self.query)
        self.attention = MultiHeadAttention(width, heads)

    def forward(self, x: Float[Tensor, "B S C"]) -> Float[Tensor, "B C"]:
        return self.attention(self.query.expand(len(x), -1, -1), x).squeeze(1)


def stack_config(config: ViTConfig) -> StackConfig:
    """Pre-norm blocks; learned positions are added to the patches before, and the window is a mask for their grid."""
    return StackConfig(
        width=config.width,
        heads=config.heads,
        split=config.split,
        head_widths=config.head_widths,
        feedforward=config.feedforward,
        layers=config.layers,
        norm="pre",
        epsilon=config.epsilon,
        activation="gelu",
        positions="none" if config.positions == "learned" else config.positions,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        layer_scale=config.layer_scale,
        depth_dropout=config.depth_dropout,
    )


MODEL, CONFIG = ViT, ViTConfig

TRAINED = {"learning_rate": 1e-3, "schedule": "cosine", "weight_decay": 0.05, "betas": (0.9, 0.999)}

_DEIT3 = {"class_position": False, "layer_scale": 1e-6}

_TINY = {"image_size": 28, "patch": 4, "width": 128, "heads": 4, "feedforward": 512, "layers": 6}

PRESETS: dict[str, dict[str, Any]] = {
    "vit-tiny": {**_TINY, "dropout": 0.1},
    "deit3-nano": {**_TINY, **_DEIT3, "layer_scale": 0.1},
    "vit-hybrid-tiny": {
        "image_size": 28,
        "patch": 1,
        "cnn": "resnet20",
        "width": 96,
        "heads": 4,
        "feedforward": 384,
        "layers": 3,
    },
    "vit-hybrid-base": {"patch": 1, "cnn": "resnet50"},
    "vit-light": {
        "image_size": 64,
        "patch": 8,
        "width": 128,
        "heads": 4,
        "feedforward": 256,
        "layers": 4,
        "dropout": 0.1,
    },
    "vit-base-16": {},
    "vit-large-16": {"width": 1024, "heads": 16, "feedforward": 4096, "layers": 24},
    "deit3-small-16": {**_DEIT3, "width": 384, "heads": 6, "feedforward": 1536, "depth_dropout": 0.05},
    "deit3-base-16": {**_DEIT3, "depth_dropout": 0.2},
}

TRAINING = {
    "vit-tiny": TRAINED,
    "vit-hybrid-tiny": TRAINED,
    "vit-light": TRAINED,
}
"""The settings of training that suit a preset, where they differ from its task's."""

SIZES: dict[str, dict[str, int]] = {
    name: {"classes": 1000}
    for name in ("vit-base-16", "vit-large-16", "vit-hybrid-base", "deit3-small-16", "deit3-base-16")
}
"""The classes of ImageNet, which other data replaces."""
