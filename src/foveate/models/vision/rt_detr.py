"""RT-DETR: a detector in real time, whose queries start from the surest places (Zhao et al. 2023,
https://arxiv.org/abs/2304.08069).

Attention between places is within the coarsest feature map alone; convolutions join the maps. The places with the
surest classes become the queries of a deformable decoder (Zhu et al. 2021). Training makes the score of a class tell
how well its box fits, so that sure places are also precise ones ("IoU-aware").

B batch    S places of all maps    Q queries    C width    G groups of noisy boxes
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import IGNORE
from foveate.errors import UserError
from foveate.models.vision.deformable_detr import last_widths
from foveate.models.vision.detections import Detections, detections
from foveate.models.vision.image_encoder import Backbone, feature_maps, fix_norms, image_encoder
from foveate.nn import (
    ConvNorm,
    DeformableAttention,
    DeformableDecoder,
    DeformableDecoderBlock,
    FeatureMaps,
    FeedForward,
    HybridEncoder,
    MultiHeadAttention,
    PlaceProposals,
    Residual,
    TransformerBlock,
    denoising_mask,
    inside_images,
    pick_places,
    surest_places,
)


@dataclass
class RTDETRConfig:
    """The sizes of an RT-DETR. Defaults are those with a ResNet-50."""

    classes: FromData
    """How many classes of objects there are. They are decided one by one."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    backbone: Backbone = "resnet50-vd"
    """Preset of the model whose last feature maps are read: any that has some."""
    fixed_norms: bool = True
    """Batch norms of the backbone keep the mean and the deviation that they have, as those of trained weights do."""
    backbone_stages: int = 3
    """How many of the last feature maps of the backbone are read."""
    encoder_width: int = 256
    """Width of the encoder, a multiple of 4."""
    encoder_feedforward: int = 1024
    """Inner width of the feed-forward layers of the encoder."""
    encoder_layers: int = 1
    """Blocks of self-attention between the places of the coarsest map."""
    fusion_width: int = 256
    """Width of the convolutions that join two maps."""
    width: int = 256
    """Width C of the decoder."""
    heads: int = 8
    """Attention heads of each layer."""
    feedforward: int = 1024
    """Inner width of the feed-forward layers of the decoder."""
    decoder_layers: int = 6
    """Blocks in which queries attend to each other and to the feature maps."""
    decoder_points: int = 4
    """Points of each map that a head of the decoder looks at."""
    queries: int = 300
    """The most objects that can be found in an image; as many at least as an image of the training has."""
    denoising: int | None = None
    """Groups of queries that start from noisy boxes of the objects, in training only."""
    many_places: bool = False
    """In training a head of its own finds objects at all places, several places for each object, which teaches the
    backbone and the encoder (Zong et al. 2023, https://arxiv.org/abs/2211.12860)."""
    dropout: float = 0.0
    """Share of layer outputs that is dropped in training."""

    no_object: ClassVar[bool] = False
    """No class says that there is no object."""
    iou_aware: ClassVar[bool] = True
    """Scores of classes learn how well boxes fit."""


class RTDETR(nn.Module):
    """Reads images of any size that its backbone reads."""

    backbone: Any

    def __init__(self, config: RTDETRConfig) -> None:
        super().__init__()
        if config.encoder_width % 4:
            raise UserError(f"encoder_width is {config.encoder_width}, but must be a multiple of 4: waves of positions")
        self.config, width = config, config.encoder_width
        self.backbone = image_encoder(config.backbone, config.channels, 224)
        if config.fixed_norms:
            fix_norms(self.backbone)
        join = partial(ConvNorm, kernel=1, activation=None)
        given = last_widths(self.backbone, config)
        self.project = nn.ModuleList(join(one, width) for one in given)
        blocks = (encoder_block(config) for _ in range(config.encoder_layers))
        self.encoder = HybridEncoder(blocks, width, config.fusion_width, len(given))
        self.join = nn.ModuleList(join(width, config.width) for _ in given)
        self.proposals = PlaceProposals(config.width, config.classes)
        self.every_place = PlaceProposals(config.width, config.classes) if config.many_places else None
        self.queries = BoxEmbedding(config.width, config.classes if config.denoising else None)
        own = (decoder_block(config, len(given)) for _ in range(config.decoder_layers))
        self.decoder = DeformableDecoder(own, config.width, config.classes, refines=True)

    def forward(
        self,
        pixels: Float[Tensor, "B c h w"],
        sizes: Int[Tensor, "B 2"] | None = None,
        noisy_boxes: Float[Tensor, "B G K 4"] | None = None,
        noisy_labels: Int[Tensor, "B G K"] | None = None,
    ) -> Detections:
        """Detects objects, one for each query.

        `sizes` are the height and the width of each image, where images are padded at the right and the bottom; boxes
        are shares of these. Noisy boxes are G variants of the K objects of each image, with IGNORE as label of padding.
        """
        given = feature_maps(self.backbone, pixels, self.config.backbone_stages)
        given = [project(one) for project, one in zip(self.project, given, strict=True)]
        joined = self.encoder(given, inside_images(pixels, given[-1], sizes))
        maps = FeatureMaps.of([join(one) for join, one in zip(self.join, joined, strict=True)], pixels, sizes)
        vectors, logits, boxes = self.proposals(maps.places, maps)
        chosen = surest_places(logits.amax(-1), self.config.queries)
        first = Detections(logits=pick_places(logits, chosen), boxes=pick_places(boxes, chosen))
        x, around = pick_places(vectors, chosen).detach(), first.boxes.detach()
        queries, mask = x.shape[1], None
        if noisy_boxes is not None and noisy_labels is not None and self.queries.labels is not None:
            x = torch.cat([x, self.queries.of_labels(noisy_labels)], 1)
            around, mask = torch.cat([around, noisy_boxes.flatten(1, 2)], 1), denoising_mask(queries, noisy_labels)
        found = detections(self.decoder(x, maps, maps.places, around, self.queries, mask), queries)
        found.earlier = (first, *found.earlier)
        if self.every_place is not None and self.training:
            _, logits, boxes = self.every_place(maps.places, maps)
            found.places = Detections(logits=logits, boxes=boxes)
        return found

    def grid_size(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of the finest map of an image of this size."""
        stride = self.backbone.stride >> (self.config.backbone_stages - 1)
        return -(-height // stride), -(-width // stride)


class BoxEmbedding(nn.Module):
    """The positions of queries, from their boxes, and the vectors of those that start from noisy boxes."""

    def __init__(self, width: int, classes: int | None) -> None:
        """With `classes`, a vector of each, and one of padding."""
        super().__init__()
        self.project = nn.Sequential(nn.Linear(4, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.labels = None if classes is None else nn.Embedding(classes + 1, width, padding_idx=classes)

    def forward(self, boxes: Float[Tensor, "B T 4"]) -> Float[Tensor, "B T C"]:
        return self.project(boxes)

    def of_labels(self, labels: Int[Tensor, "B G K"]) -> Float[Tensor, "B T C"]:
        """The vectors of noisy labels, group by group."""
        assert self.labels is not None
        padding = self.labels.num_embeddings - 1
        return self.labels(labels.masked_fill(labels == IGNORE, padding)).flatten(1, 2)


def encoder_block(config: RTDETRConfig) -> TransformerBlock:
    """Self-attention between the places of the coarsest map."""
    width = config.encoder_width
    attention = MultiHeadAttention(width, config.heads, dropout=config.dropout)
    feedforward = FeedForward(width, config.encoder_feedforward, "gelu", config.dropout)
    return TransformerBlock(attention, feedforward, partial(Residual, width, "post", config.dropout))


def decoder_block(config: RTDETRConfig, levels: int) -> DeformableDecoderBlock:
    """Attention between queries, and from them to the feature maps."""
    width = config.width
    attention = MultiHeadAttention(width, config.heads, dropout=config.dropout)
    cross = DeformableAttention(width, config.heads, levels, config.decoder_points)
    feedforward = FeedForward(width, config.feedforward, "relu", config.dropout)
    return DeformableDecoderBlock(attention, cross, feedforward, partial(Residual, width, "post", config.dropout))


MODEL, CONFIG = RTDETR, RTDETRConfig

_SMALL: dict[str, Any] = {
    "fixed_norms": False,
    "encoder_width": 96,
    "encoder_feedforward": 192,
    "fusion_width": 48,
    "width": 96,
    "heads": 4,
    "feedforward": 192,
    "decoder_layers": 3,
    "denoising": 3,
}

PRESETS: dict[str, dict[str, Any]] = {
    "rt-detr-resnet18": {"backbone": "resnet18-vd", "fusion_width": 128, "decoder_layers": 3},
    "rt-detr-resnet50": {},
    "rt-detr-tiny": {**_SMALL, "backbone": "resnet14", "queries": 25},
    "rt-detr-lite0": {
        **_SMALL,
        "backbone": "efficientnet-lite0-16",
        "backbone_stages": 2,
        "queries": 100,
        "many_places": True,
    },
}

_TRAINED = {"learning_rate": 1e-4, "schedule": "constant", "weight_decay": 1e-4, "clip": 0.1}

TRAINING = {
    "rt-detr-resnet18": _TRAINED,
    "rt-detr-resnet50": _TRAINED,
    "rt-detr-lite0": {"optimizer": "muon", "learning_rate": 6e-3, "usual_warmup": 50, "average": 1},
}
"""The settings of training that suit a preset, where they differ from its task's."""

SIZES: dict[str, dict[str, int]] = {name: {"classes": 80} for name in ("rt-detr-resnet18", "rt-detr-resnet50")}
"""The classes of COCO, which other data replaces."""
