"""The speech Transformer: convolutions that shorten the spectrogram, then a Transformer encoder and decoder.

(Dong et al. 2018, Speech-Transformer; in the form of S2T, Wang et al. 2020, https://arxiv.org/abs/2010.05171.)
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import padding, window
from foveate.config import FromData
from foveate.models.speech.output import SpeechOutput
from foveate.nn import (
    DecoderBlock,
    DecoderStack,
    DecoderStackState,
    Dropout,
    FeedForward,
    HeadFields,
    Residual,
    TransformerBlock,
    attention_layer,
    initialize,
    position_encoding,
    tie_output,
)
from foveate.nn.encoder_decoder import EncoderDecoder


@dataclass
class SpeechTransformerConfig(HeadFields):
    """The sizes of a speech Transformer. Defaults are those of S2T's small model."""

    bands: FromData
    """Bands F of the spectrogram."""
    vocabulary: FromData
    """Characters that are written."""
    convolution: int = 1024
    """Channels of the first convolution, before half of them gate the others."""
    kernel: int = 5
    """Frames of each convolution's window, an odd number."""
    width: int = 256
    """Width C of all layers."""
    heads: int = 4
    """Attention heads of each layer."""
    feedforward: int = 2048
    """Inner width of the feed-forward layers."""
    encoder_layers: int = 12
    """Blocks of the encoder."""
    decoder_layers: int = 6
    """Blocks of the decoder."""
    ctc: bool = False
    """Whether the encoder has an output layer for joint training with CTC."""
    dropout: float = 0.1
    """Share of embeddings and layer outputs that is dropped in training."""


class SpeechTransformer(EncoderDecoder, nn.Module):
    """Encodes a spectrogram and writes its transcript character by character."""

    def __init__(self, config: SpeechTransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.subsampling = GatedSubsampling(config.bands, config.convolution, config.width, config.kernel)
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.positions, _ = position_encoding("sinusoidal", config.width, config.heads, 0)
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(_encoder_block(config, number) for number in range(config.encoder_layers))
        blocks = (_decoder_block(config, number) for number in range(config.decoder_layers))
        self.decoder = DecoderStack(blocks, config.window)
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.output = nn.Linear(config.width, config.vocabulary, bias=False)
        self.ctc = nn.Linear(config.width, config.vocabulary) if config.ctc else None
        initialize(self, config.width)
        tie_output(self.output, self.embedding)

    def forward(
        self,
        source: Float[Tensor, "B S F"],
        source_lengths: Int[Tensor, "B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, "B"] | None = None,
    ) -> SpeechOutput:
        """Logits of the character after each target character, and those for CTC."""
        encoded, lengths = self.encode(source, source_lengths)
        x = self.decoder(self._embed(target), encoded, padding(lengths))
        output = SpeechOutput(self.output(self.decoder_norm(x)))
        if self.ctc is not None:
            output.ctc, output.ctc_lengths = self.ctc(encoded), lengths
        return output

    def encode(
        self, source: Float[Tensor, "B S F"], lengths: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B Z C"], Int[Tensor, "B"]]:
        """The encoded sound, Z = S / 4 rounded up, and its lengths."""
        x, lengths = self.subsampling(source, lengths)
        x = self.dropout(self.positions(x * math.sqrt(self.config.width)))
        mask = padding(lengths) if self.config.window is None else padding(lengths) & window(self.config.window)
        for block in self.encoder:
            x = block(x, mask=mask)
        return self.encoder_norm(x), lengths

    def start(self, source: Float[Tensor, "B S F"], source_lengths: Int[Tensor, "B"]) -> DecoderStackState:
        encoded, lengths = self.encode(source, source_lengths)
        return self.decoder.start(encoded, lengths, expected=encoded.shape[1])

    def step(self, tokens: Int[Tensor, "R"], state: DecoderStackState) -> Float[Tensor, "R N"]:
        x = self.decoder.step(self._embed(tokens[:, None], state.steps), state)
        return self.output(self.decoder_norm(x)).squeeze(1)

    def _embed(self, tokens: Int[Tensor, "R T"], start: int = 0) -> Float[Tensor, "R T C"]:
        return self.dropout(self.positions(self.embedding(tokens) * math.sqrt(self.config.width), start))


class GatedSubsampling(nn.Module):
    """Two convolutions over time with a stride of 2, each with a gated linear unit: a quarter of the frames."""

    def __init__(self, bands: int, inner: int, width: int, kernel: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(bands, inner, kernel, stride=2, padding=kernel // 2)
        self.second = nn.Conv1d(inner // 2, 2 * width, kernel, stride=2, padding=kernel // 2)

    def forward(
        self, x: Float[Tensor, "B S F"], lengths: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B Z C"], Int[Tensor, "B"]]:
        """The shorter sequence and its lengths. Padding is set to zero, so that no result depends on it."""
        for convolution in (self.first, self.second):
            real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
            x = F.glu(convolution((x * real[..., None]).mT), 1).mT
            lengths = (lengths + 1) // 2
        return x, lengths


def _residual(config: SpeechTransformerConfig) -> Residual:
    return Residual(config.width, "pre", config.dropout)


def _encoder_block(config: SpeechTransformerConfig, number: int) -> TransformerBlock:
    feedforward = FeedForward(config.width, config.feedforward, dropout=config.dropout)
    return TransformerBlock(attention_layer(config, number=number), feedforward, partial(_residual, config))


def _decoder_block(config: SpeechTransformerConfig, number: int) -> DecoderBlock:
    attention, cross = (attention_layer(config, number=number, to_source=cross) for cross in (False, True))
    feedforward = FeedForward(config.width, config.feedforward, dropout=config.dropout)
    return DecoderBlock(attention, cross, feedforward, partial(_residual, config))


MODEL, CONFIG = SpeechTransformer, SpeechTransformerConfig

TRAINED = {"learning_rate": 2e-3}

PRESETS: dict[str, dict[str, Any]] = {
    "speech-transformer": {},
    "speech-transformer-tiny": {
        "convolution": 256,
        "width": 128,
        "feedforward": 512,
        "encoder_layers": 4,
        "decoder_layers": 2,
        "ctc": True,
    },
}

SIZES: dict[str, dict[str, int]] = {"speech-transformer": {"bands": 80, "vocabulary": 10_000}}
"""The filters and the vocabulary of S2T's small model, which other data replaces."""

TRAINING = {
    "speech-transformer-tiny": TRAINED,
}
"""The settings of training that suit a preset, where they differ from its task's."""
