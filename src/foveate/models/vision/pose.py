"""A Transformer whose queries each look for one named point of an image, such as an elbow (TFPose, Mao et al. 2021,
https://arxiv.org/abs/2103.15320).

A point is where its query looks: the mean of the places of the feature map, by the weights of a last attention to them
(Sun et al. 2018, https://arxiv.org/abs/1711.08229).

B batch    K points    S places of the feature map
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveate.attention import attend, grid_window
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError, check_literals
from foveate.models.vision.image_encoder import Backbone, image_encoder
from foveate.nn import (
    DecoderBlock,
    FeedForward,
    HeadFields,
    MultiHeadAttention,
    Residual,
    TransformerBlock,
    attention_layer,
    grid_positions,
    inside_images,
)


@dataclass
class PoseConfig(HeadFields):
    """The sizes of the model. The window is one of the encoder, on the feature map."""

    points: FromData
    """How many points there are: each has a query."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    backbone: Backbone = "resnet50"
    """Preset of the model whose feature map is read: any that has one."""
    image_size: int = 224
    """Height and width of the images, for a backbone that learns positions."""
    width: int = 256
    """Width C of all layers, a multiple of 4."""
    heads: int = 8
    """Attention heads of each layer."""
    feedforward: int = 1024
    """Inner width of the feed-forward layers."""
    encoder_layers: int = 6
    """Blocks of self-attention between the places of the feature map."""
    decoder_layers: int = 6
    """Blocks in which queries attend to each other and to the feature map."""
    norm: Literal["post", "pre"] = "pre"
    """Layer norm after each residual sum, or before each layer, which learns faster."""
    dropout: float = 0.1
    """Share of layer outputs that is dropped in training."""


@dataclass(kw_only=True)
class Points(Output):
    """The findings of the queries: `logits` (B, K) of its point being in the image, and the point."""

    points: Float[Tensor, "B K 2"]
    """Across and down, as shares of the image's width and height."""
    spread: Float[Tensor, "B K"]
    """How far from the point the query looked: the standard deviation of the places, as a share of the image."""


class Pose(nn.Module):
    """Reads images of any size that its backbone reads."""

    backbone: Any
    """A `foveate.contracts.GridEncoder`."""

    def __init__(self, config: PoseConfig) -> None:
        super().__init__()
        check_literals(config)
        if config.width % 4:
            raise UserError(f"width is {config.width}, but must be a multiple of 4: waves of rows and of columns")
        self.config, width = config, config.width
        self.backbone = image_encoder(config.backbone, config.channels, config.image_size)
        self.project = nn.Conv2d(self.backbone.grid_width, width, 1)
        self.encoder = nn.ModuleList(
            TransformerBlock(attention(config, number), feedforward(config), residual(config))
            for number in range(config.encoder_layers)
        )
        self.encoder_norm = nn.LayerNorm(width)
        self.decoder = PointDecoder(config)
        self.output = nn.Linear(width, 1)

    def forward(self, pixels: Float[Tensor, "B c h w"], sizes: Int[Tensor, "B 2"] | None = None) -> Points:
        """Locates each point. `sizes` are the height and the width of each image, where images are padded at the right
        and the bottom; points are shares of these."""
        grid = self.project(self.backbone.grid(pixels))
        inside = inside_images(pixels, grid, sizes)
        places, mask = grid_positions(inside, self.config.width, grid.dtype), inside.flatten(1)[:, None, None]
        near = mask if self.config.window is None else mask & grid_window(self.config.window, grid.shape[3])
        x = grid.flatten(2).mT
        for block in self.encoder:
            x = block(x, mask=near, positions=places)
        found = self.decoder(self.encoder_norm(x), places, mask, centres(inside, pixels.shape[2:], sizes))
        return Points(logits=self.output(found[0]).squeeze(-1), points=found[1], spread=found[2])


class PointDecoder(nn.Module):
    """Queries that read the places of an encoded image, and then point at them."""

    def __init__(self, config: PoseConfig) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.empty(config.points, config.width))
        self.blocks = nn.ModuleList(
            DecoderBlock(
                attention(config, number),
                attention(config, number, to_source=True),
                feedforward(config),
                residual(config),
            )
            for number in range(config.decoder_layers)
        )
        self.norm = nn.LayerNorm(config.width)
        self.cross = Locate(config.width)
        nn.init.normal_(self.queries)

    def forward(
        self,
        x: Float[Tensor, "B S C"],
        positions: Float[Tensor, "B S C"],
        mask: Bool[Tensor, "B 1 1 S"],
        places: Float[Tensor, "B S 2"],
    ) -> tuple[Float[Tensor, "B K C"], Float[Tensor, "B K 2"], Float[Tensor, "B K"]]:
        """Returns the output of the queries, and the points and their spread; `places` are the points that x is
        about."""
        y = self.queries.expand(len(x), -1, -1)
        for block in self.blocks:
            y = block(y, x, source_mask=mask, source_positions=positions)
        y = self.norm(y)
        return y, *self.cross(y, x + positions, places, mask)


class Locate(nn.Module):
    """Attention whose values are the places themselves: what a query gets is the point that it looks at."""

    attends = True

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(
        self,
        queries: Float[Tensor, "B K C"],
        keys: Float[Tensor, "B S C"],
        places: Float[Tensor, "B S 2"],
        mask: Bool[Tensor, "B 1 1 S"],
    ) -> tuple[Float[Tensor, "B K 2"], Float[Tensor, "B K"]]:
        """The mean place that each query looks at, and the standard deviation."""
        values = torch.cat([places, places.square().sum(-1, keepdim=True)], -1).to(keys.dtype)
        q, k, v = (part[:, None] for part in (self.query(queries), self.key(keys), values))
        found = attend(q, k, v, mask=mask).squeeze(1)
        points, squares = found[..., :2], found[..., 2]
        return points, (squares - points.square().sum(-1)).clamp_min(1e-6).sqrt()


def centres(
    inside: Bool[Tensor, "B i j"], extent: torch.Size, sizes: Int[Tensor, "B 2"] | None
) -> Float[Tensor, "B S 2"]:
    """The centre of each place of a feature map, row by row: across and down, as shares of the image inside."""
    rows, columns = inside.shape[1:]
    height, width = extent
    whole = torch.tensor([[height, width]], device=inside.device).expand(len(inside), -1)
    real = (whole if sizes is None else sizes).float()
    down = (torch.arange(rows, device=inside.device) + 0.5) * height / rows / real[:, :1]
    across = (torch.arange(columns, device=inside.device) + 0.5) * width / columns / real[:, 1:]
    grid = torch.stack([across[:, None].expand(-1, rows, -1), down[:, :, None].expand(-1, -1, columns)], -1)
    return grid.flatten(1, 2)


def attention(config: PoseConfig, number: int, to_source: bool = False) -> MultiHeadAttention:
    return attention_layer(config, config.dropout, number, to_source)


def feedforward(config: PoseConfig) -> FeedForward:
    return FeedForward(config.width, config.feedforward, "relu", config.dropout)


def residual(config: PoseConfig) -> partial[Residual]:
    return partial(Residual, config.width, config.norm, config.dropout)


MODEL, CONFIG = Pose, PoseConfig

PRESETS: dict[str, dict[str, Any]] = {
    "pose-resnet50": {},
    "pose-tiny": {
        "backbone": "resnet-light",
        "width": 96,
        "heads": 4,
        "feedforward": 192,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "dropout": 0.0,
    },
}

SIZES: dict[str, dict[str, int]] = {"pose-resnet50": {"points": 17}}
"""The sizes of the data of a preset's paper, which other data replaces."""
