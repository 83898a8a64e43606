"""The audio spectrogram Transformer: a spectrogram is a sequence of patches that overlap (Gong et al. 2021,
https://arxiv.org/abs/2104.01778)."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import grid_window
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError
from foveate.nn import Dropout, FeedForward, HeadFields, Residual, TransformerBlock, attention_layer, initialize, norm


@dataclass
class AudioTransformerConfig(HeadFields):
    """The sizes of an audio Transformer. Defaults are those of the paper."""

    classes: FromData
    """How many classes there are to decide between."""
    bands: FromData
    """Bands F of the spectrogram."""
    frames: FromData
    """Frames of the spectrograms that positions are learned for. For other lengths they are interpolated."""
    patch: int = 16
    """Bands and frames of a patch. Each patch is projected to one vector."""
    stride: int = 10
    """Bands and frames from one patch to the next. Patches overlap if it is less than `patch`."""
    width: int = 768
    """Width C of all layers."""
    heads: int = 12
    """Attention heads of each layer."""
    feedforward: int = 3072
    """Inner width of the feed-forward layers."""
    layers: int = 12
    """Blocks of self-attention and a feed-forward layer."""
    epsilon: float = 1e-6
    """What layer norms add to the variance."""
    dropout: float = 0.0
    """Share of embeddings and layer outputs that is dropped in training."""


class AudioTransformer(nn.Module):
    """Classifies a spectrogram by the mean of two tokens beside its patches, as DeiT's models are pretrained."""

    def __init__(self, config: AudioTransformerConfig) -> None:
        super().__init__()
        self.config = config
        rows, columns = self.grid_size(config.bands, config.frames)
        self.patches = nn.Conv2d(1, config.width, config.patch, config.stride)
        self.tokens = nn.Parameter(torch.empty(1, 2, config.width))
        self.positions = nn.Parameter(torch.empty(1, 2 + rows * columns, config.width))
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(_block(config, number) for number in range(config.layers))
        self.norm, self.output_norm = (nn.LayerNorm(config.width, config.epsilon) for _ in range(2))
        self.output = nn.Linear(config.width, config.classes)
        initialize(self, config.width)
        for parameter in (self.tokens, self.positions):
            nn.init.normal_(parameter, std=0.02)

    def forward(self, pixels: Float[Tensor, "B 1 F S"]) -> Output:
        """Logits of the classes, (B, N)."""
        pooled = self.encode(pixels)[:, :2].mean(1)
        return Output(self.output(self.output_norm(pooled)))

    def encode(self, pixels: Float[Tensor, "B 1 F S"]) -> Float[Tensor, "B T C"]:
        """The two tokens and the patches, band by band."""
        patch, (bands, frames) = self.config.patch, pixels.shape[2:]
        if min(bands, frames) < patch:
            raise UserError(
                f"a spectrogram of {bands} bands and {frames} frames is smaller than a patch of {patch} x {patch}"
            )
        rows, columns = self.grid_size(bands, frames)
        places = torch.cat([self.tokens.expand(len(pixels), -1, -1), self.patches(pixels).flatten(2).mT], 1)
        x = self.dropout(places + self._positions(rows, columns))
        near = None if self.config.window is None else grid_window(self.config.window, columns, first=2)
        for block in self.blocks:
            x = block(x, near)
        return self.norm(x)

    def grid_size(self, bands: int, frames: int) -> tuple[int, int]:
        """Rows and columns of the patches of a spectrogram."""
        patch, stride = self.config.patch, self.config.stride
        return max(0, bands - patch) // stride + 1, max(0, frames - patch) // stride + 1

    def _positions(self, rows: int, columns: int) -> Float[Tensor, "1 T C"]:
        known = self.grid_size(self.config.bands, self.config.frames)
        if (rows, columns) == known:
            return self.positions
        tokens, places = self.positions.tensor_split([2], 1)
        stretched = F.interpolate(places.mT.unflatten(2, known), (rows, columns), mode="bilinear")
        return torch.cat([tokens, stretched.flatten(2).mT], 1)


def _block(config: AudioTransformerConfig, number: int) -> TransformerBlock:
    return TransformerBlock(
        attention_layer(config, number=number),
        FeedForward(config.width, config.feedforward, "gelu", config.dropout),
        partial(Residual, config.width, "pre", config.dropout, norm("layer", config.epsilon)),
    )


MODEL, CONFIG = AudioTransformer, AudioTransformerConfig

TRAINED = {"learning_rate": 1e-3, "schedule": "cosine", "weight_decay": 0.05, "betas": (0.9, 0.999)}

PRESETS: dict[str, dict[str, Any]] = {
    "audio-transformer": {},
    "audio-transformer-tiny": {
        "patch": 8,
        "stride": 8,
        "width": 128,
        "heads": 4,
        "feedforward": 512,
        "layers": 4,
        "dropout": 0.1,
    },
}

TRAINING = {
    "audio-transformer-tiny": TRAINED,
}
"""The settings of training that suit a preset, where they differ from its task's."""

SIZES: dict[str, dict[str, int]] = {"audio-transformer": {"classes": 527, "bands": 128, "frames": 1024}}
"""The sizes of the data of a preset's paper, which other data replaces."""
