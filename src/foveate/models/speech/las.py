"""Listen, Attend and Spell: a pyramidal encoder of sound and a decoder of characters (Chan et al. 2016,
https://arxiv.org/abs/1508.01211).

The encoder can be trained by CTC too, which makes it learn the order of the characters early (Kim et al. 2017,
https://arxiv.org/abs/1609.06773). The encoder of a Whisper can listen in its place.

B batch    S frames    F bands    Z places of the encoded sound    T characters    N characters that there are
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Additive, Biaffine, Monotonic, Soft
from foveate.config import FromData
from foveate.contracts import Choices
from foveate.errors import at_least, check_literals
from foveate.models.speech.output import SpeechOutput
from foveate.models.speech.whisper_encoder import WhisperBody, WhisperEncoder, whisper_encoder
from foveate.nn import ContextDecoder, Dropout, PyramidalEncoder, Recurrent, RecurrentDecoderState
from foveate.nn.encoder_decoder import EncoderDecoder
from foveate.nn.local_windows import AdvancingWindow

PYRAMID = "pyramid"
"""The listener of the paper."""


@dataclass
class LASConfig:
    """The sizes of a listener and a speller. Defaults are those of the paper."""

    bands: FromData
    """Bands F of the spectrogram."""
    vocabulary: FromData
    """Characters that are written."""
    width: int = 512
    """Width of all recurrent layers; the listener's give half to each direction."""
    listener: WhisperBody = PYRAMID
    """"pyramid", LSTMs of which each but the first halves the time, or the preset of the Whisper whose encoder listens;
    trained weights (--from) decide its sizes."""
    pyramids: int = 3
    """Pyramidal layers on the first one of the listener. Each halves the time."""
    embedding: int = 512
    """Width of the character embeddings."""
    layers: int = 2
    """Recurrent layers of the speller."""
    score: Literal["biaffine", "additive"] = "biaffine"
    """The product of both sides' projections, as in the paper, or a multi-layer perceptron of both."""
    score_activation: Literal["tanh", "relu", "sigmoid"] = "tanh"
    """With the additive score: the function g in u g(W1 k + W2 q + b)."""
    select: Literal["soft", "monotonic", "local"] = "soft"
    """The weighted mean of the encoded sound, places from left to right (Raffel et al. 2017), or the weighted mean in a
    window that moves from left to right (Tjandra et al. 2017)."""
    window_radius: int = 8
    """Places of the encoded sound on each side of a local window's centre."""
    ctc: bool = False
    """Whether the listener has an output layer for joint training with CTC."""
    dropout: float = 0.0
    """Share of the outputs of recurrent layers that is dropped in training."""


class LAS(EncoderDecoder, nn.Module):
    """Encodes a spectrogram and writes its transcript character by character."""

    def __init__(self, config: LASConfig) -> None:
        super().__init__()
        check_literals(config)
        at_least(1, "window_radius", config.window_radius)
        self.config = config
        width = config.width
        self.listener: PyramidalEncoder | WhisperEncoder
        self.projection: nn.Linear | None = None
        if config.listener == PYRAMID:
            self.listener = PyramidalEncoder(config.bands, width, config.pyramids, config.dropout)
        else:
            self.listener = whisper_encoder(config.listener, config.bands)
            self.projection = nn.Linear(self.listener.width, width)
        self.embedding = nn.Embedding(config.vocabulary, config.embedding)
        self.dropout = Dropout(config.dropout)
        score = (
            Biaffine(width, width)
            if config.score == "biaffine"
            else Additive(width, width, width, getattr(torch, config.score_activation))
        )
        select = Monotonic() if config.select == "monotonic" else Soft()
        window = AdvancingWindow(width, config.window_radius) if config.select == "local" else None
        self.speller = ContextDecoder(self._recurrent, width, width, score, select, window)
        self.output = nn.Linear(width, config.vocabulary)
        self.ctc = nn.Linear(width, config.vocabulary) if config.ctc else None

    def _recurrent(self, context_width: int) -> Recurrent:
        config = self.config
        input_width = config.embedding + context_width
        return Recurrent("lstm", input_width, config.width, config.layers, dropout=config.dropout)

    def forward(
        self,
        source: Float[Tensor, "B S F"],
        source_lengths: Int[Tensor, "B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, "B"] | None = None,
    ) -> SpeechOutput:
        """Logits of the character after each target character, and those for CTC."""
        encoded, lengths = self.listen(source, source_lengths)
        hidden, choices = self._advance(target, self._start(encoded, lengths))
        output = SpeechOutput(self.output(hidden), choices)
        if self.ctc is not None:
            output.ctc, output.ctc_lengths = self.ctc(encoded), lengths
        return output

    def start(self, source: Float[Tensor, "B S F"], source_lengths: Int[Tensor, "B"]) -> RecurrentDecoderState:
        return self._start(*self.listen(source, source_lengths))

    def listen(
        self, source: Float[Tensor, "B S F"], lengths: Int[Tensor, "B"]
    ) -> tuple[Float[Tensor, "B Z C"], Int[Tensor, "B"]]:
        """The encoded sound and its lengths. That of a Whisper is brought into the width and the range of an LSTM's."""
        encoded, lengths = self.listener(source, lengths)
        if self.projection is not None:
            encoded = self.dropout(self.projection(encoded).tanh())
        return encoded, lengths

    def step(self, tokens: Int[Tensor, "R"], state: RecurrentDecoderState) -> Float[Tensor, "R N"]:
        hidden, _ = self._advance(tokens[:, None], state)
        return self.output(hidden).squeeze(1)

    def _start(self, encoded: Float[Tensor, "B Z C"], lengths: Int[Tensor, "B"]) -> RecurrentDecoderState:
        zeros = encoded.new_zeros(self.config.layers, len(encoded), self.config.width)
        return self.speller.start((zeros, zeros), encoded, lengths)

    def _advance(self, tokens: Int[Tensor, "R T"], state: RecurrentDecoderState) -> tuple[Tensor, Choices | None]:
        hidden, choices = self.speller(self.dropout(self.embedding(tokens)), state)
        return self.dropout(hidden), choices


MODEL, CONFIG = LAS, LASConfig

TRAINED = {"learning_rate": 2e-3, "precision": "float32"}
"""In bfloat16 the recurrent layers take a third more time on a CPU."""

PRESETS: dict[str, dict[str, Any]] = {
    "las": {},
    "las-tiny": {
        "width": 128,
        "pyramids": 2,
        "embedding": 64,
        "layers": 1,
        "ctc": True,
        "dropout": 0.2,
    },
    "las-whisper-tiny": {
        "listener": "whisper-tiny",
        "width": 256,
        "embedding": 64,
        "layers": 1,
        "ctc": True,
        "dropout": 0.2,
    },
}

SIZES: dict[str, dict[str, int]] = {"las": {"bands": 40, "vocabulary": 43}}
"""Of the paper: filters, and letters, digits, punctuation, the unknown one and both ends. Other data replaces them."""

TRAINING = {
    "las-tiny": TRAINED,
    "las-whisper-tiny": TRAINED,
}
"""The settings of training that suit a preset, where they differ from its task's."""
