"""Whisper: a Transformer that transcribes windows of 30 seconds (Radford et al. 2023,
https://arxiv.org/abs/2212.04356)."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import tyro
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import padding
from foveate.config import FromData
from foveate.models.speech.output import SpeechOutput
from foveate.models.speech.whisper_encoder import WhisperLayers, whisper_attention, whisper_feedforward
from foveate.nn import (
    DecoderBlock,
    DecoderStack,
    DecoderStackState,
    Residual,
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


class Whisper(EncoderDecoder, WhisperLayers):
    """Encodes a spectrogram and writes its transcript token by token."""

    def __init__(self, config: WhisperConfig) -> None:
        super().__init__(config.bands, config)
        self.config = config
        width = config.width
        self.embedding = nn.Embedding(config.vocabulary, width)
        self.positions, _ = position_encoding("learned", width, config.heads, config.max_length)
        self.decoder = DecoderStack(_decoder_block(config) for _ in range(config.decoder_layers))
        self.decoder_norm = nn.LayerNorm(width)
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

    def start(self, source: Float[Tensor, "B S F"], source_lengths: Int[Tensor, "B"]) -> DecoderStackState:
        encoded, lengths = self.encode(source, source_lengths)
        return self.decoder.start(encoded, lengths, expected=64)

    def step(self, tokens: Int[Tensor, "R"], state: DecoderStackState) -> Float[Tensor, "R N"]:
        x = self.decoder.step(self._embed(tokens[:, None], state.steps), state)
        return self.output(self.decoder_norm(x)).squeeze(1)

    def _embed(self, tokens: Int[Tensor, "R T"], start: int = 0) -> Float[Tensor, "R T C"]:
        return self.dropout(self.positions(self.embedding(tokens), start))


def _decoder_block(config: WhisperConfig) -> DecoderBlock:
    residual = partial(Residual, config.width, "pre", config.dropout)
    attention, cross = whisper_attention(config), whisper_attention(config)
    return DecoderBlock(attention, cross, whisper_feedforward(config), residual)


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
