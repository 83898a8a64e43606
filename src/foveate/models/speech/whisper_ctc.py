"""A Transformer that writes by CTC (Graves et al. 2006): the encoder of a Whisper, and the character at each place.

B batch    S frames    F bands    Z places, half of the frames    N characters, with the blank
"""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.models.speech.output import SpeechOutput
from foveate.models.speech.whisper_encoder import WhisperBody, whisper_encoder
from foveate.nn import Dropout


@dataclass
class WhisperCTCConfig:
    """The sizes of a listener with an output layer."""

    bands: FromData
    """Bands F of the spectrogram."""
    vocabulary: FromData
    """Characters that are written, with the blank."""
    listener: WhisperBody = "whisper-tiny"
    """Preset of the Whisper whose encoder listens; trained weights (--from) decide its sizes."""
    dropout: float = 0.0
    """Share of the encoded sound that is dropped in training."""


class WhisperCTC(nn.Module):
    """Encodes a spectrogram and predicts the character at each place."""

    def __init__(self, config: WhisperCTCConfig) -> None:
        super().__init__()
        self.config = config
        self.listener = whisper_encoder(config.listener, config.bands)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(self.listener.width, config.vocabulary)

    def forward(self, source: Float[Tensor, "B S F"], source_lengths: Int[Tensor, "B"]) -> SpeechOutput:
        """Logits of the character at each place (B, Z, N)."""
        encoded, lengths = self.listener(source, source_lengths)
        logits = self.output(self.dropout(encoded))
        return SpeechOutput(logits, ctc=logits, ctc_lengths=lengths)


MODEL, CONFIG = WhisperCTC, WhisperCTCConfig

PRESETS: dict[str, dict[str, Any]] = {"whisper-ctc-tiny": {"dropout": 0.1}}

TRAINING = {"whisper-ctc-tiny": {"learning_rate": 1e-3}}
"""The settings of training that suit a preset, where they differ from its task's."""
