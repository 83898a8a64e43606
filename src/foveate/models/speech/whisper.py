"""Whisper: a Transformer that transcribes windows of 30 seconds (Radford et al. 2023,
https://arxiv.org/abs/2212.04356)."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import torch
import torch.nn.functional as F
import tyro
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import padding
from foveate.config import FromData
from foveate.errors import UserError
from foveate.models.speech.output import SpeechOutput
from foveate.nn import (
    DecoderBlock,
    DecoderStack,
    DecoderStackState,
    Dropout,
    FeedForward,
    MultiHeadAttention,
    Residual,
    TransformerBlock,
    initialize_language_model,
    position_encoding,
    tie_output,
)
from foveate.nn.encoder_decoder import EncoderDecoder


@dataclass
class WhisperConfig:
    """The sizes of a Whisper. Defaults are those of the smallest one."""

    bands: FromData
    """Bands F of the spectrogram."""
    vocabulary: FromData
    """Tokens that are written."""
    width: int = 384
    """Width C of all layers."""
    heads: int = 6
    """Attention heads of each layer."""
    feedforward: int = 1536
    """Inner width of the feed-forward layers."""
    encoder_layers: int = 4
    """Blocks of the encoder."""
    decoder_layers: int = 4
    """Blocks of the decoder."""
    max_source: int = 1500
    """Positions of the encoder, each of two frames: 1,500 are 30 seconds."""
    max_length: int = 448
    """Positions of the decoder."""
    windows: Annotated[bool, tyro.conf.Suppress] = False
    """Sounds are padded with silence to windows of 30 seconds, and written in tokens, as by the public models; trained
    weights decide it."""
    ctc: bool = False
    """Whether the encoder has an output layer for joint training with CTC."""
    dropout: float = 0.0
    """Share of embeddings and layer outputs that is dropped in training."""


class Whisper(EncoderDecoder, nn.Module):
    """Encodes a spectrogram and writes its transcript token by token."""

    source_positions: Tensor

    def __init__(self, config: WhisperConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.first = nn.Conv1d(config.bands, width, 3, padding=1)
        self.second = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.register_buffer("source_positions", sinusoids(config.max_source, width))
        self.embedding = nn.Embedding(config.vocabulary, width)
        self.positions, _ = position_encoding("learned", width, config.heads, config.max_length)
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(_encoder_block(config) for _ in range(config.encoder_layers))
        self.decoder = DecoderStack(_decoder_block(config) for _ in range(config.decoder_layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.output = nn.Linear(width, config.vocabulary, bias=False)
        self.ctc = nn.Linear(width, config.vocabulary) if config.ctc else None
        initialize_language_model(self)
        tie_output(self.output, self.embedding)

    def forward(
        self,
        source: Float[Tensor, "B S F"],
        source_lengths: Int[Tensor, "B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, "B"] | None = None,
    ) -> SpeechOutput:
        """Logits of the token after each target token, and those for CTC."""
        encoded, lengths = self.encode(source, source_lengths)
        x = self.decoder(self._embed(target), encoded, padding(lengths))
        output = SpeechOutput(self.output(self.decoder_norm(x)))
        if self.ctc is not None:
            output.ctc, output.ctc_lengths = self.ctc(encoded), lengths
        return output

    def encode(
        self, source: Float[Tensor, "B S F"], lengths: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B Z C"], Int[Tensor, "B"]]:
        """The encoded sound, Z = S / 2 rounded up, and its lengths.

        What is behind `lengths` is padding. The public models are trained with silence there instead, which counts.
        """
        most = 2 * self.config.max_source
        if source.shape[1] > most:
            raise UserError(f"a sound has {source.shape[1]:,} frames, but the model reads {most:,} at most: cut it")
        x = F.gelu(self.first(_without_padding(source, lengths).mT))
        x = F.gelu(self.second(_without_padding(x.mT, lengths).mT)).mT
        x = self.dropout(x + self.source_positions[: x.shape[1]])
        lengths = (lengths + 1) // 2
        for block in self.encoder:
            x = block(x, mask=padding(lengths))
        return self.encoder_norm(x), lengths

    def start(self, source: Float[Tensor, "B S F"], source_lengths: Int[Tensor, "B"]) -> DecoderStackState:
        encoded, lengths = self.encode(source, source_lengths)
        return self.decoder.start(encoded, lengths, expected=64)

    def step(self, tokens: Int[Tensor, "R"], state: DecoderStackState) -> Float[Tensor, "R N"]:
        x = self.decoder.step(self._embed(tokens[:, None], state.steps), state)
        return self.output(self.decoder_norm(x)).squeeze(1)

    def _embed(self, tokens: Int[Tensor, "R T"], start: int = 0) -> Float[Tensor, "R T C"]:
        return self.dropout(self.positions(self.embedding(tokens), start))


def sinusoids(length: int, width: int) -> Float[Tensor, "T C"]:
    """Sines in the first half of the channels and cosines in the second; wavelengths from 2 pi to 20,000 pi."""
    if width % 2:
        raise UserError(f"width is {width}, but must be even: half of the channels are sines, half are cosines")
    rates = torch.exp(torch.arange(width // 2) * (-math.log(10_000) / max(1, width // 2 - 1)))
    angles = torch.arange(length)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], 1)


def _without_padding(x: Float[Tensor, "B S C"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "B S C"]:
    """x with zeros behind the lengths, so that a convolution reads nothing from there."""
    return x * (torch.arange(x.shape[1], device=x.device) < lengths[:, None])[..., None]


def _attention(config: WhisperConfig) -> MultiHeadAttention:
    return MultiHeadAttention(config.width, config.heads, key_bias=False)


def _feedforward(config: WhisperConfig) -> FeedForward:
    return FeedForward(config.width, config.feedforward, "gelu", config.dropout)


def _encoder_block(config: WhisperConfig) -> TransformerBlock:
    residual = partial(Residual, config.width, "pre", config.dropout)
    return TransformerBlock(_attention(config), _feedforward(config), residual)


def _decoder_block(config: WhisperConfig) -> DecoderBlock:
    residual = partial(Residual, config.width, "pre", config.dropout)
    return DecoderBlock(_attention(config), _attention(config), _feedforward(config), residual)


MODEL, CONFIG = Whisper, WhisperConfig


def _sizes(width: int, encoder: int, decoder: int) -> dict[str, int]:
    return {
        "width": width,
        "heads": width // 64,
        "feedforward": 4 * width,
        "encoder_layers": encoder,
        "decoder_layers": decoder,
    }


PRESETS: dict[str, dict[str, Any]] = {
    "whisper-tiny": {},
    "whisper-base": _sizes(512, 6, 6),
    "whisper-small": _sizes(768, 12, 12),
    "whisper-medium": _sizes(1024, 24, 24),
    "whisper-large": _sizes(1280, 32, 32),
    "whisper-turbo": _sizes(1280, 32, 4),
}

SIZES: dict[str, dict[str, int]] = {
    **{name: {"vocabulary": 51_865, "bands": 80} for name in PRESETS},
    "whisper-turbo": {"vocabulary": 51_866, "bands": 128},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
