"""Deformable DETR: a DETR whose queries look at a few points of several feature maps (Zhu et al. 2021,
https://arxiv.org/abs/2010.04159).

With `boxes="refined"` each decoder layer corrects the boxes of the one before; with "proposed" the first of these are
what places of the feature maps propose (two stages, section 4.2).

B batch    L feature maps    S places of all maps    Q queries    C width
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.errors import UserError, check_literals
from foveate.models.vision.detections import Detections, detections
from foveate.models.vision.image_encoder import Backbone, feature_maps, feature_widths, fix_norms, image_encoder
from foveate.nn import (
    DeformableAttention,
    DeformableBlock,
    DeformableDecoder,
    DeformableDecoderBlock,
    FeatureMaps,
    FeedForward,
    MultiHeadAttention,
    PlaceProposals,
    Residual,
    coordinate_waves,
    grid_positions,
    pick_places,
    surest_places,
)


@dataclass
class DeformableDETRConfig:
    """The sizes of a Deformable DETR. Defaults are those of the paper."""

    classes: FromData
    """How many classes of objects there are. They are decided one by one."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    backbone: Backbone = "resnet50"
    """Preset of the model whose feature maps are read: any that has some."""
    fixed_norms: bool = False
    """Batch norms of the backbone keep the mean and the deviation that they have, as those of trained weights do in
    the paper."""
    backbone_stages: int = 3
    """How many of the last feature maps of the backbone are read."""
    levels: int = 4
    """Feature maps that are read: those of the stages, and smaller ones made from the last of them."""
    width: int = 256
    """Width C of all layers, a multiple of 4."""
    heads: int = 8
    """Attention heads of each layer."""
    feedforward: int = 1024
    """Inner width of the feed-forward layers."""
    encoder_layers: int = 6
    """Blocks of attention between the places of the feature maps."""
    decoder_layers: int = 6
    """Blocks in which queries attend to each other and to the feature maps."""
    encoder_points: int = 4
    """Points of each map that a head of the encoder looks at."""
    decoder_points: int = 4
    """Points of each map that a head of the decoder looks at."""
    queries: int = 300
    """The most objects that can be found in an image; as many at least as an image of the training has."""
    boxes: Literal["direct", "refined", "proposed"] = "direct"
    """All layers predict boxes around the point of their query, or each layer corrects the boxes of the layer before;
    the first of these are points of learned queries ("refined") or what places of the feature maps propose
    ("proposed")."""
    dropout: float = 0.1
    """Share of layer outputs that is dropped in training."""

    no_object: ClassVar[bool] = False
    """No class says that there is no object."""
    denoising: ClassVar[int | None] = None
    """No queries start from noisy boxes."""


class DeformableDETR(nn.Module):
    """Reads images of any size that its backbone reads."""

    backbone: Any

    def __init__(self, config: DeformableDETRConfig) -> None:
        super().__init__()
        check_literals(config)
        if config.width % 4:
            raise UserError(f"width is {config.width}, but must be a multiple of 4: waves of rows and of columns")
        self.config, width = config, config.width
        self.backbone = image_encoder(config.backbone, config.channels, 224)
        if config.fixed_norms:
            fix_norms(self.backbone)
        self.project = projections(last_widths(self.backbone, config), config)
        self.level_positions = nn.Parameter(torch.empty(config.levels, width))
        self.encoder = nn.ModuleList(encoder_block(config) for _ in range(config.encoder_layers))
        proposed = config.boxes == "proposed"
        self.proposals = PlaceProposals(width, config.classes) if proposed else None
        self.queries = BoxPositions(width) if proposed else PointQueries(config.queries, width)
        blocks = (decoder_block(config) for _ in range(config.decoder_layers))
        self.decoder = DeformableDecoder(blocks, width, config.classes, refines=config.boxes != "direct")
        nn.init.normal_(self.level_positions)

    def forward(self, pixels: Float[Tensor, "B c h w"], sizes: Int[Tensor, "B 2"] | None = None) -> Detections:
        """Detects objects, one for each query.

        `sizes` are the height and the width of each image, where images are padded at the right and the bottom; boxes
        are shares of these.
        """
        maps = FeatureMaps.of(self.feature_maps(pixels), pixels, sizes)
        places = [grid_positions(mask, self.config.width, maps.dtype, centred=True) for mask in maps.masks]
        positions = torch.cat([part + level for part, level in zip(places, self.level_positions, strict=True)], 1)
        source = maps.places
        for block in self.encoder:
            source = block(source, maps, positions)
        if self.proposals is None:
            x, own, around = self.queries(len(pixels))
            layers = self.decoder(x, maps, source, around, lambda _: own)
            return detections(layers, x.shape[1])
        _, logits, boxes = self.proposals(source, maps)
        around = pick_places(boxes, surest_places(logits[..., 0], self.config.queries)).detach()
        x, own = self.queries(around)
        found = detections(self.decoder(x, maps, source, around, lambda _: own), x.shape[1])
        found.earlier = (Detections(logits=logits[..., :1], boxes=boxes), *found.earlier)
        return found

    def feature_maps(self, pixels: Float[Tensor, "B c h w"]) -> list[Float[Tensor, "B _ _ _"]]:
        """The projected maps, from the finest to the coarsest."""
        given = feature_maps(self.backbone, pixels, self.config.backbone_stages)
        found = [project(one) for project, one in zip(self.project, given, strict=False)]
        for number, project in enumerate(self.project[len(given) :]):
            found.append(project(found[-1] if number else given[-1]))
        return found

    def grid_size(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of the finest map of an image of this size."""
        stride = self.backbone.stride >> (self.config.backbone_stages - 1)
        return -(-height // stride), -(-width // stride)


class PointQueries(nn.Module):
    """Learned queries, each with a position, from which the point is predicted that it looks around."""

    def __init__(self, queries: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(queries, 2 * width))
        self.point = nn.Linear(width, 2)
        nn.init.normal_(self.table)
        nn.init.xavier_uniform_(self.point.weight)
        nn.init.zeros_(self.point.bias)

    def forward(self, rows: int) -> tuple[Float[Tensor, "B Q C"], Float[Tensor, "B Q C"], Float[Tensor, "B Q 2"]]:
        """Vectors, positions and points."""
        positions, x = self.table.expand(rows, -1, -1).chunk(2, -1)
        return x, positions, self.point(positions).sigmoid()


class BoxPositions(nn.Module):
    """Queries whose vectors and positions are made from the waves of a box."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project, self.norm = nn.Linear(2 * width, 2 * width), nn.LayerNorm(2 * width)

    def forward(self, boxes: Float[Tensor, "B Q 4"]) -> tuple[Float[Tensor, "B Q C"], Float[Tensor, "B Q C"]]:
        """Vectors and positions."""
        waves = coordinate_waves(boxes, self.norm.normalized_shape[0] // 4).flatten(-2)
        positions, x = self.norm(self.project(waves)).chunk(2, -1)
        return x, positions


def last_widths(backbone: Any, config: Any) -> list[int]:
    """The channels of the feature maps that are read. UserError for a backbone with fewer."""
    widths, stages = feature_widths(backbone), config.backbone_stages
    if not 0 < stages <= len(widths):
        maps = f"{len(widths)} feature map" + ("s" if len(widths) > 1 else "")
        raise UserError(f"the backbone has {maps}, but backbone_stages is {stages}")
    return widths[-stages:]


def projections(widths: list[int], config: DeformableDETRConfig) -> nn.ModuleList:
    """Layers that give each feature map the width of the model; further ones halve the map before."""
    if config.levels < len(widths):
        raise UserError(f"levels is {config.levels}, but there are {len(widths)} stages, each of which is one")
    layers = [nn.Conv2d(width, config.width, 1) for width in widths]
    for number in range(config.levels - len(widths)):
        layers.append(nn.Conv2d(config.width if number else widths[-1], config.width, 3, stride=2, padding=1))
    norm = partial(nn.GroupNorm, math.gcd(32, config.width), config.width)
    return nn.ModuleList(nn.Sequential(layer, norm()) for layer in layers)


def encoder_block(config: DeformableDETRConfig) -> DeformableBlock:
    """Attention between the places of the feature maps."""
    return DeformableBlock(deformable(config, config.encoder_points), feedforward(config), residual(config))


def decoder_block(config: DeformableDETRConfig) -> DeformableDecoderBlock:
    """Attention between queries, and from them to the feature maps."""
    own = MultiHeadAttention(config.width, config.heads, dropout=config.dropout)
    cross = deformable(config, config.decoder_points)
    return DeformableDecoderBlock(own, cross, feedforward(config), residual(config))


def deformable(config: DeformableDETRConfig, points: int) -> DeformableAttention:
    return DeformableAttention(config.width, config.heads, config.levels, points)


def feedforward(config: DeformableDETRConfig) -> FeedForward:
    return FeedForward(config.width, config.feedforward, "relu", config.dropout)


def residual(config: DeformableDETRConfig) -> partial[Residual]:
    return partial(Residual, config.width, "post", config.dropout)


MODEL, CONFIG = DeformableDETR, DeformableDETRConfig

_TINY = {
    "backbone": "resnet14",
    "backbone_stages": 2,
    "levels": 2,
    "width": 128,
    "heads": 4,
    "feedforward": 256,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "queries": 25,
    "boxes": "refined",
    "dropout": 0.0,
}

PRESETS: dict[str, dict[str, Any]] = {
    "deformable-detr-resnet50": {},
    "deformable-detr-tiny": _TINY,
}

TRAINING = {
    "deformable-detr-resnet50": {"learning_rate": 2e-4, "schedule": "constant", "weight_decay": 1e-4, "clip": 0.1}
}
"""The settings of training that suit a preset, where they differ from its task's."""

SIZES: dict[str, dict[str, int]] = {"deformable-detr-resnet50": {"classes": 91}}
"""The classes of COCO, which other data replaces."""
