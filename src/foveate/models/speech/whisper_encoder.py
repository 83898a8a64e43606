"""The encoder of a Whisper: two convolutions over a spectrogram, then blocks of self-attention (Radford et al. 2023,
https://arxiv.org/abs/2212.04356). Whisper itself is one with a decoder; other models listen with it.

B batch    S frames    F bands    Z places, half of the frames    C width
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
import tyro
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate import models
from foveate.attention import padding
from foveate.config import from_dict
from foveate.errors import UserError
from foveate.nn import Dropout, FeedForward, MultiHeadAttention, Residual, TransformerBlock, initialize_language_model


@runtime_checkable
class EncoderSizes(Protocol):
    """The fields of a config that decide an encoder."""

    width: int
    heads: int
    feedforward: int
    encoder_layers: int
    max_source: int
    dropout: float


@dataclass
class WhisperEncoderConfig:
    """The sizes of an encoder of any sizes, such as that of a Hugging Face folder. Defaults are those of the smallest
    Whisper."""

    width: int = 384
    """Width C of all layers."""
    heads: int = 6
    """Attention heads of each layer."""
    feedforward: int = 1536
    """Inner width of the feed-forward layers."""
    encoder_layers: int = 4
    """Blocks."""
    max_source: int = 1500
    """Positions, each of two frames: 1,500 are 30 seconds."""
    dropout: float = 0.0
    """Share of embeddings and layer outputs that is dropped in training."""

    @classmethod
    def of(cls, config: Any) -> "WhisperEncoderConfig":
        """The encoder of a Whisper of this config."""
        return cls(**{part.name: getattr(config, part.name) for part in fields(cls)})


_FLAG: Any = tyro.constructors.PrimitiveConstructorSpec(
    nargs=1,
    metavar="PRESET",
    instance_from_str=lambda words: words[0],
    is_instance=lambda value: isinstance(value, str | WhisperEncoderConfig),
    str_from_instance=lambda value: [value if isinstance(value, str) else "a Whisper's encoder"],
)

WhisperBody = Annotated[str | WhisperEncoderConfig, _FLAG]
"""The type of a config's field for what listens: the preset of a Whisper, or the sizes that a training began from."""


class WhisperLayers(nn.Module):
    """The layers of a Whisper that read a spectrogram."""

    source_positions: Tensor

    def __init__(self, bands: int, sizes: EncoderSizes) -> None:
        super().__init__()
        width = sizes.width
        self.first = nn.Conv1d(bands, width, 3, padding=1)
        self.second = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.register_buffer("source_positions", sinusoids(sizes.max_source, width))
        self.dropout = Dropout(sizes.dropout)
        self.encoder = nn.ModuleList(_block(sizes) for _ in range(sizes.encoder_layers))
        self.encoder_norm = nn.LayerNorm(width)

    def encode(
        self, source: Float[Tensor, "B S F"], lengths: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B Z C"], Int[Tensor, "B"]]:
        """The encoded sound, Z = S / 2 rounded up, and its lengths.

        What is behind `lengths` is padding. The public models are trained with silence there instead, which counts.
        """
        most = 2 * len(self.source_positions)
        if source.shape[1] > most:
            raise UserError(f"a sound has {source.shape[1]:,} frames, but the model reads {most:,} at most: cut it")
        x = F.gelu(self.first(_without_padding(source, lengths).mT))
        x = F.gelu(self.second(_without_padding(x.mT, lengths).mT)).mT
        x = self.dropout(x + self.source_positions[: x.shape[1]])
        lengths = (lengths + 1) // 2
        for block in self.encoder:
            x = block(x, mask=padding(lengths))
        return self.encoder_norm(x), lengths


class WhisperEncoder(WhisperLayers):
    """A Whisper without its decoder."""

    def __init__(self, bands: int, sizes: EncoderSizes) -> None:
        super().__init__(bands, sizes)
        self.width = sizes.width
        initialize_language_model(self)

    def forward(
        self, source: Float[Tensor, "B S F"], lengths: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B Z C"], Int[Tensor, "B"]]:
        """The encoded sound and its lengths."""
        return self.encode(source, lengths)


def whisper_encoder(listener: str | WhisperEncoderConfig, bands: int) -> WhisperEncoder:
    """The encoder of a Whisper's preset, or of these sizes. Raises UserError for a preset of another family."""
    return WhisperEncoder(bands, listener_sizes(listener))


def listener_sizes(listener: str | WhisperEncoderConfig) -> WhisperEncoderConfig:
    """The sizes that a preset's name stands for. Raises UserError for a preset of another family."""
    if not isinstance(listener, str):
        return listener
    preset = models.preset(listener)
    if preset.family != "whisper":
        raise UserError(f"{listener} is a {preset.family}, but the listener must be the preset of a Whisper")
    values: Mapping[str, Any] = preset.values
    known = {part.name for part in fields(WhisperEncoderConfig)}
    return from_dict(WhisperEncoderConfig, {name: values[name] for name in known & values.keys()}, listener)


def sinusoids(length: int, width: int) -> Float[Tensor, "T C"]:
    """Sines in the first half of the channels and cosines in the second; wavelengths from 2 pi to 20,000 pi."""
    if width % 2:
        raise UserError(f"width is {width}, but must be even: half of the channels are sines, half are cosines")
    rates = torch.exp(torch.arange(width // 2) * (-math.log(10_000) / max(1, width // 2 - 1)))
    angles = torch.arange(length)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], 1)


def whisper_attention(sizes: EncoderSizes) -> MultiHeadAttention:
    """An attention layer of a Whisper, whose keys have no bias."""
    return MultiHeadAttention(sizes.width, sizes.heads, key_bias=False)


def whisper_feedforward(sizes: EncoderSizes) -> FeedForward:
    """A feed-forward layer of a Whisper."""
    return FeedForward(sizes.width, sizes.feedforward, "gelu", sizes.dropout)


def _without_padding(x: Float[Tensor, "B S C"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "B S C"]:
    """x with zeros behind the lengths, so that a convolution reads nothing from there."""
    return x * (torch.arange(x.shape[1], device=x.device) < lengths[:, None])[..., None]


def _block(sizes: EncoderSizes) -> TransformerBlock:
    residual = partial(Residual, sizes.width, "pre", sizes.dropout)
    return TransformerBlock(whisper_attention(sizes), whisper_feedforward(sizes), residual)
