"""DETR: a Transformer whose queries each find one object (Carion et al. 2020, https://arxiv.org/abs/2005.12872).

With `boxes="refined"` each query starts from a learned box, and each layer corrects it (Liu et al. 2022, DAB-DETR,
https://arxiv.org/abs/2201.12329); with "proposed", from a box that a place of the feature map proposes (Zhu et al.
2021, https://arxiv.org/abs/2010.04159). With "conditional" each query has a reference point, and compares content and
position apart (Meng et al. 2021, https://arxiv.org/abs/2108.06152). With `denoising`, such queries also learn to
correct boxes that are known up to noise (Li et al. 2022, DN-DETR, https://arxiv.org/abs/2203.01305).
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveate.attention import Mask, Selection, grid_window
from foveate.config import FromData
from foveate.errors import UserError, check_literals
from foveate.models.vision.detections import Detections, detections
from foveate.models.vision.image_encoder import Backbone, fix_norms, image_encoder
from foveate.nn import (
    BoxQueries,
    ConditionalBlock,
    ConditionalQueries,
    DecoderBlock,
    FeedForward,
    HeadFields,
    LearnedQueries,
    MultiHeadAttention,
    Proposals,
    Residual,
    TransformerBlock,
    attention_layer,
    box_layers,
    class_logits,
    grid_positions,
    inside_images,
    surest_boxes,
)
from foveate.nn.differential_attention import DifferentialAttention
from foveate.nn.heads import check_usual_heads


@dataclass
class DETRConfig(HeadFields):
    """The sizes of a DETR. Defaults are those of the paper. The window is one of the encoder, on the feature map."""

    classes: FromData
    """How many classes of objects there are."""
    channels: int = 3
    """Channels of the images: 3 for colour, 1 for grey."""
    backbone: Backbone = "resnet50"
    """Preset of the model whose feature map is read: any that has one."""
    image_size: int = 224
    """Height and width of the images, for a backbone that learns positions."""
    fixed_norms: bool = False
    """Batch norms of the backbone keep the mean and the deviation that they have, as those of trained weights do in
    the paper."""
    width: int = 256
    """Width C of all layers, a multiple of 4."""
    heads: int = 8
    """Attention heads of each layer."""
    feedforward: int = 2048
    """Inner width of the feed-forward layers."""
    encoder_layers: int = 6
    """Blocks of self-attention between the places of the feature map."""
    decoder_layers: int = 6
    """Blocks in which queries attend to each other and to the feature map."""
    queries: int = 100
    """The most objects that can be found in an image; as many at least as an image of the training has."""
    norm: Literal["post", "pre"] = "post"
    """Layer norm after each residual sum, or before each layer, which learns faster."""
    boxes: Literal["direct", "conditional", "refined", "proposed"] = "direct"
    """Each layer predicts whole boxes from its queries (the paper), or corrects the boxes of the layer before; the
    first of these are learned ("refined") or what places of the feature map propose ("proposed"). With "conditional"
    all layers predict the offset from a point of their query."""
    no_object: bool = True
    """Queries without an object have a class of their own (softmax). Otherwise classes are decided one by one (sigmoid,
    for focal loss)."""
    denoising: int | None = None
    """Groups of queries that start from noisy boxes of the objects, in training only. Not with direct boxes."""
    dropout: float = 0.1
    """Share of layer outputs that is dropped in training."""


class DETR(nn.Module):
    """Reads images of any size that its backbone reads."""

    backbone: Any
    """A `foveate.contracts.GridEncoder`."""

    def __init__(self, config: DETRConfig) -> None:
        super().__init__()
        check_literals(config)
        if config.width % 4:
            raise UserError(f"width is {config.width}, but must be a multiple of 4: waves of rows and of columns")
        if config.denoising and config.boxes in ("direct", "conditional"):
            raise UserError('denoising needs boxes="refined" or "proposed": its queries start from boxes')
        self.config, width, pre = config, config.width, config.norm == "pre"
        self.backbone = image_encoder(config.backbone, config.channels, config.image_size)
        if config.fixed_norms:
            fix_norms(self.backbone)
        self.project = nn.Conv2d(self.backbone.grid_width, width, 1)
        self.encoder = nn.ModuleList(encoder_block(config, number) for number in range(config.encoder_layers))
        self.encoder_norm = nn.LayerNorm(width) if pre else nn.Identity()
        classify = partial(class_logits, width, config.classes, config.no_object)
        self.proposals = (
            Proposals(width, classify(), box_layers(width, corrects=True)) if config.boxes == "proposed" else None
        )
        self.queries = object_queries(config)
        self.decoder = nn.ModuleList(decoder_block(config, number) for number in range(config.decoder_layers))
        self.decoder_norm = nn.LayerNorm(width)
        self.output = classify()
        self.box = box_layers(width, config.boxes != "direct")
        self._initialize()

    def _initialize(self) -> None:
        for part in (*self.encoder.modules(), *self.decoder.modules()):
            if isinstance(part, Selection | DifferentialAttention):  # they begin as they are
                continue
            for parameter in part.parameters(recurse=False):
                if parameter.ndim > 1:
                    nn.init.xavier_uniform_(parameter)

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
        encoded, places, inside = self.encode(pixels, sizes)
        mask = None if sizes is None else inside.flatten(1)[:, None, None]
        proposed = None if self.proposals is None else self.proposals(encoded, inside)
        first = None if proposed is None else surest_boxes(proposed[0], proposed[1], self.config.queries)
        x, anchors, seen = self.queries(len(pixels), noisy_boxes, noisy_labels, first)
        queries = x.shape[1] if noisy_boxes is None else x.shape[1] - noisy_boxes[0, ..., 0].numel()
        layers = []
        for number, block in enumerate(self.decoder):
            own = {"positions": self.queries.positions(anchors), "source_positions": places}
            if isinstance(self.queries, ConditionalQueries):
                own["waves"] = self.queries.waves(anchors, x, first=number == 0)
            x = block(x, encoded, mask=seen, source_mask=mask, **own)
            y = self.decoder_norm(x)
            boxes = self.box(y)
            if anchors is not None:
                boxes = boxes + anchors
                anchors = anchors if self.config.boxes == "conditional" else boxes.detach()
            layers.append((self.output(y), boxes.sigmoid()))
        found = detections(layers, queries)
        if proposed is not None:
            found.earlier = (Detections(logits=proposed[0], boxes=proposed[1].sigmoid()), *found.earlier)
        return found

    def encode(
        self, pixels: Float[Tensor, "B c h w"], sizes: Int[Tensor, "B 2"] | None = None
    ) -> tuple[Float[Tensor, "B S C"], Float[Tensor, "B S C"], Bool[Tensor, "B i j"]]:
        """The encoded places of the feature map row by row, their positions, and which are not padding."""
        grid = self.project(self.backbone.grid(pixels))
        inside = inside_images(pixels, grid, sizes)
        positions = grid_positions(inside, self.config.width, grid.dtype)
        mask = None if sizes is None else inside.flatten(1)[:, None, None]
        near: Mask | Tensor | None = mask
        if self.config.window is not None:
            near = grid_window(self.config.window, grid.shape[3])
            near = near if mask is None else near & mask
        x = grid.flatten(2).mT
        for block in self.encoder:
            x = block(x, mask=near, positions=positions)
        return self.encoder_norm(x), positions, inside


def object_queries(config: DETRConfig) -> LearnedQueries | BoxQueries:
    """Returns the queries that the decoder starts from."""
    if config.boxes in ("direct", "conditional"):
        kind = LearnedQueries if config.boxes == "direct" else ConditionalQueries
        return kind(config.queries, config.width)
    noisy = config.classes if config.denoising else None
    return BoxQueries(config.queries, config.width, noisy, learned=config.boxes == "refined")


def encoder_block(config: DETRConfig, number: int) -> TransformerBlock:
    """Self-attention between the places of the feature map."""
    return TransformerBlock(attention(config, number), feedforward(config), residual(config))


def decoder_block(config: DETRConfig, number: int) -> DecoderBlock | ConditionalBlock:
    """Attention between queries, and from them to the feature map."""
    if config.boxes == "conditional":
        check_usual_heads(config, 'boxes="conditional"')
        parts = feedforward(config), residual(config)
        return ConditionalBlock(config.width, config.heads, config.dropout, *parts, first=number == 0)
    both = attention(config, number), attention(config, number, to_source=True)
    return DecoderBlock(*both, feedforward(config), residual(config))


def attention(config: DETRConfig, number: int, to_source: bool = False) -> MultiHeadAttention:
    return attention_layer(config, config.dropout, number, to_source)


def feedforward(config: DETRConfig) -> FeedForward:
    return FeedForward(config.width, config.feedforward, "relu", config.dropout)


def residual(config: DETRConfig) -> partial[Residual]:
    return partial(Residual, config.width, config.norm, config.dropout)


MODEL, CONFIG = DETR, DETRConfig

TRAINED = {"learning_rate": 1e-4, "schedule": "constant", "weight_decay": 1e-4, "clip": 0.1}

_REFINED = {"norm": "pre", "boxes": "refined", "no_object": False, "denoising": 3}

_TINY = {
    "backbone": "resnet14",
    "width": 128,
    "heads": 4,
    "feedforward": 512,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "queries": 25,
    "dropout": 0.0,
}

PRESETS: dict[str, dict[str, Any]] = {
    "detr-resnet50": {},
    "detr-tiny": _TINY,
    "detr-refined-tiny": {**_TINY, **_REFINED},
    "detr-lite0-tiny": {
        **_TINY,
        **_REFINED,
        "boxes": "proposed",
        "backbone": "efficientnet-lite0-16",
        "fixed_norms": True,
    },
}

TRAINING = {
    "detr-resnet50": TRAINED,
}
"""The settings of training that suit a preset, where they differ from its task's."""

SIZES: dict[str, dict[str, int]] = {"detr-resnet50": {"classes": 91}}
"""The classes of COCO, which other data replaces."""
