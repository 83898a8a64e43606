"""The vision Transformer: an image is a sequence of patches (Dosovitskiy et al. 2021, https://arxiv.org/abs/2010.11929).

With a `cnn` it is the paper's hybrid: the places of a convolutional network's feature map are the patches.

    DeiT      a second class token, which learns from a teacher (Touvron et al. 2021, https://arxiv.org/abs/2012.12877)
    DeiT III  layer scale, and a class token without position (Touvron et al. 2022, https://arxiv.org/abs/2204.07118)
    BEiT      relative positions in each layer (Bao et al. 2022, https://arxiv.org/abs/2106.08254)
    DINOv2    layer scale; the classifier reads the class token and the mean (Oquab et al. 2024,
              https://arxiv.org/abs/2304.07193), perhaps with registers (Darcet et al. 2024,
              https://arxiv.org/abs/2309.16588)
    DINOv3    rotary positions of rows and columns (Siméoni et al. 2025, https://arxiv.org/abs/2508.10104)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Mask, RelativePatchPosition, grid_window
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError, check_literals
from foveate.models.vision.image_encoder import image_encoder
from foveate.models.vision.sizes import into_patches
from foveate.nn import (
    FeedForward,
    GridRotary,
    HeadFields,
    MultiHeadAttention,
    StackConfig,
    TransformerStack,
    initialize,
    stack_heads,
)


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
    head: Literal["label", "none"] = "label"
    """A classifier, or none: then the output is what the classifier would read."""
    pooling: Literal["token", "mean", "attention", "attention-layer", "patches", "token-mean"] = "token"
    """What the classifier reads: a class token beside the patches; the mean of the patches; the result of multi-head
    attention to them with a learned query (Zhai et al. 2022, https://arxiv.org/abs/2106.04560), perhaps with a
    feed-forward layer after it ("attention-layer", SigLIP). There is a class token
    too where it reads the mean of the "patches" alone, or both together ("token-mean")."""
    pooled_norm: bool = False
    """The last norm is that of what the classifier reads, not that of each place before."""
    distillation: Literal["none", "token", "classifier"] = "none"
    """A second class token, which learns from a teacher (DeiT). With a classifier of its own, logits are the mean of
    both."""
    registers: int | None = None
    """Learned tokens without position that nothing reads in the end; by default none."""
    positions: Literal["learned", "sinusoidal", "relative", "rotary", "none"] = "learned"
    """A learned vector for each place, waves along the sequence of patches, what each head of each layer adds to the
    scores of an offset in rows and columns, rotations of queries and keys by rows and columns, or no positions."""
    class_position: bool = True
    """Whether class tokens have a learned position as the patches do, if these have learned ones."""
    antialias: bool = False
    """Learned positions are smoothed where they are interpolated for smaller images."""
    rotary_base: float = 100.0
    """Rotary positions: the frequencies fall from 1 to almost 1 / rotary_base."""
    input_norm: bool = False
    """A norm before the first layer, too (CLIP)."""
    patch_bias: bool = True
    """The projection of patches has a bias."""
    key_bias: bool = True
    """Projections to keys have a bias, as those to queries and values do."""
    query_value_bias: bool = True
    """Projections to queries and values have a bias."""
    activation: Literal["relu", "gelu", "gelu-tanh", "gelu-sigmoid", "silu"] = "gelu"
    """Activation function of the feed-forward layers."""
    gated: bool = False
    """A second linear layer gates each feed-forward layer (SwiGLU, with silu)."""
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


WITH_TOKEN = ("token", "patches", "token-mean")
"""The poolings of models that have a class token."""


class ViT(nn.Module):
    """Reads images whose height and width are multiples of the patch's."""

    distances: Iterable[RelativePatchPosition]

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
        self.patches = nn.Conv2d(read, width, config.patch, stride=config.patch, bias=config.patch_bias)
        self.class_token = _tokens(1, width) if config.pooling in WITH_TOKEN else None
        self.teacher_token = _tokens(1, width) if config.distillation != "none" else None
        self.registers = _tokens(config.registers, width) if config.registers else None
        learned, self.side = config.positions == "learned", -(-config.image_size // self.stride)
        tokens = sum(part is not None for part in (self.class_token, self.teacher_token))
        self.with_position = tokens if learned and config.class_position else 0
        self.positions = _tokens(self.with_position + self.side**2, width) if learned else None
        self.rotary = GridRotary(width // config.heads, config.rotary_base) if config.positions == "rotary" else None
        relative = config.layers if config.positions == "relative" else 0
        self.distances = nn.ModuleList(  # type: ignore[assignment]
            RelativePatchPosition(config.heads, self.side - 1, self.tokens_before) for _ in range(relative)
        )
        self.stack = TransformerStack(stack_config(config))
        attends = config.pooling in ("attention", "attention-layer")
        self.pool = AttentionPool(config) if attends else None
        self.pooled_norm: nn.Module = nn.Identity()
        if config.pooled_norm:
            self.stack.norm, self.pooled_norm = self.pooled_norm, self.stack.norm
        has_bias = {"query": config.query_value_bias, "key": config.key_bias, "value": config.query_value_bias}
        for block in self.stack.blocks:
            for name in (name for name, has in has_bias.items() if not has):
                getattr(block.self, name).register_parameter("bias", None)
        classifies, read = config.head == "label", width * (2 if config.pooling == "token-mean" else 1)
        self.output = nn.Linear(read, config.classes) if classifies else nn.Identity()
        self.teacher_output = nn.Linear(width, config.classes) if config.distillation == "classifier" else None
        self._initialize()

    def _initialize(self) -> None:
        initialize(self, self.config.width)
        nn.init.xavier_uniform_(self.patches.weight.flatten(1))  # it is a linear layer of the pixels of a patch
        if self.patches.bias is not None:
            nn.init.zeros_(self.patches.bias)
        for parameter in (self.positions, self.class_token, self.teacher_token, self.registers):
            if parameter is not None:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, pixels: Float[Tensor, "B c h w"]) -> Output:
        """Logits of the classes, (B, N); without a head what a classifier would read."""
        encoded = self.encode(pixels)
        logits = self.output(self.pooled_norm(self._pool(encoded)))
        if self.teacher_output is not None:
            logits = (logits + self.teacher_output(encoded[:, 1])) / 2
        return Output(logits)

    def _pool(self, encoded: Float[Tensor, "B T C"]) -> Float[Tensor, "B P"]:
        if self.pool is not None:
            return self.pool(encoded)
        if self.config.pooling == "token":
            return encoded[:, 0]
        mean = encoded[:, self.tokens_before :].mean(1)
        return torch.cat([encoded[:, 0], mean], 1) if self.config.pooling == "token-mean" else mean

    def pool_each(self, pixels: Float[Tensor, "B c h w"]) -> Float[Tensor, "B S P"]:
        """What a classifier would read if the query that pools saw one patch alone, for each of the S patches.

        That is the patch's value in the last attention, projected as its output is (MaskCLIP, Zhou et al. 2022,
        https://arxiv.org/abs/2112.01071). The class token's own state and the feed-forward layer behind it are left
        out. Raises UserError for a model that pools by a mean.
        """
        if self.pool is not None:
            places = self.encode(pixels)[:, self.tokens_before :]
            found: Tensor = self.pooled_norm(self.pool(places.flatten(0, 1)[:, None]))
            return found.unflatten(0, places.shape[:2])
        if self.config.pooling != "token":
            raise UserError(f"pooling {self.config.pooling!r} has no query that could see one patch alone")
        *_, block = self.stack.blocks
        kept: list[Tensor] = []
        hook = block.register_forward_pre_hook(lambda module, given: kept.append(given[0]))
        try:
            self.encode(pixels)
        finally:
            hook.remove()
        places = kept[0][:, self.tokens_before :]
        alone = block.self(block.around_self.norm(places).flatten(0, 1)[:, None])[:, 0]
        pooled: Tensor = self.pooled_norm(self.stack.norm(alone))
        return pooled.unflatten(0, places.shape[:2])

    @property
    def _prefix(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """The tokens before the patches."""
        return self.class_token, self.teacher_token, self.registers

    @property
    def tokens_before(self) -> int:
        """How many there are."""
        return sum(token.shape[1] for token in self._prefix if token is not None)

    def grid_size(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of the patches of images of this size."""
        return height // self.stride, width // self.stride

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
        x, grid = patches.flatten(2).mT, (patches.shape[2], patches.shape[3])
        tokens = [token for token in self._prefix if token is not None]
        first = torch.cat(tokens, 1) if tokens else x[:1, :0]
        if self.positions is not None:
            own, places = self.interpolate_positions(self.positions, *grid)
            x = x + places
            first = torch.cat([first[:, : self.with_position] + own, first[:, self.with_position :]], 1)
        count = first.shape[1]
        if count:
            x = torch.cat([first.expand(len(x), -1, -1), x], 1)
        radius = self.config.window
        near: Mask | None = None if radius is None else grid_window(radius, grid[1], count)
        biases = [distance.with_grids(grid) for distance in self.distances]
        rotation = None if self.rotary is None else self.rotary(grid, count, x)
        return self.stack(x, near, biases=biases, rotation=rotation)

    def interpolate_positions(
        self, positions: Float[Tensor, "1 N C"], rows: int, columns: int
    ) -> tuple[Float[Tensor, "1 t C"], Float[Tensor, "1 T C"]]:
        """The positions of class tokens, if they have some, and those of `rows` x `columns` patches."""
        token, places = positions.tensor_split([self.with_position], 1)
        if (rows, columns) == (self.side, self.side):
            return token, places
        square = places.mT.unflatten(2, (self.side, self.side))
        smooth = self.config.antialias
        square = square.float() if smooth else square  # torch smooths no numbers of half precision on a CPU
        found = F.interpolate(square, (rows, columns), mode="bicubic", align_corners=False, antialias=smooth)
        found = found.to(positions.dtype)
        return token, found.flatten(2).mT


def _tokens(count: int, width: int) -> nn.Parameter:
    """Learned vectors (1, count, C), which `ViT` initializes."""
    return nn.Parameter(torch.empty(1, count, width))


class AttentionPool(nn.Module):
    """Multi-head attention to a sequence with one learned query, and perhaps a feed-forward layer."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        width = config.width
        self.query = nn.Parameter(torch.empty(1, 1, width))
        nn.init.normal_(self.query)
        self.attention = MultiHeadAttention(width, config.heads)
        self.norm = self.feedforward = None
        if config.pooling == "attention-layer":
            self.norm = nn.LayerNorm(width, config.epsilon)
            self.feedforward = FeedForward(width, config.feedforward, config.activation)

    def forward(self, x: Float[Tensor, "B S C"]) -> Float[Tensor, "B C"]:
        x = self.attention(self.query.expand(len(x), -1, -1), x).squeeze(1)
        return x if self.norm is None or self.feedforward is None else x + self.feedforward(self.norm(x))


def stack_config(config: ViTConfig) -> StackConfig:
    """Pre-norm blocks; positions of rows and columns, and the window on their grid, are given with the patches."""
    return StackConfig(
        width=config.width,
        **stack_heads(config),
        feedforward=config.feedforward,
        layers=config.layers,
        norm="pre",
        epsilon=config.epsilon,
        input_norm=config.input_norm,
        activation=config.activation,
        gated=config.gated,
        positions="sinusoidal" if config.positions == "sinusoidal" else "none",
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
