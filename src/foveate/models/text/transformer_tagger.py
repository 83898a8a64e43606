"""The encoder of the Transformer (Vaswani et al. 2017) as a tagger of words."""

import math
from dataclasses import dataclass
from typing import Any

from jaxtyping import Int
from torch import Tensor, nn

from foveate.attention import padding
from foveate.config import FromData
from foveate.contracts import Output
from foveate.nn import Dropout, Recurrent, StackConfig, TransformerStack, WordEmbedding, initialize


@dataclass(kw_only=True)
class TransformerTaggerConfig(StackConfig):
    """The sizes of the encoder, of the vocabulary and of the tag set."""

    vocabulary: FromData
    """Number of words with a vector."""
    spellings: FromData
    """Number of vectors of spelling features."""
    tags: FromData
    """Number of tags."""
    recurrent_layers: int | None = None
    """Layers of a bidirectional LSTM that reads the words first; the encoder reads its output. By default none."""


class TransformerTagger(nn.Module):
    """Embeds the words, encodes them and classifies each."""

    def __init__(self, config: TransformerTaggerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = WordEmbedding(config.vocabulary, config.spellings, config.width)
        self.recurrent = _recurrent(config)
        self.encoder = TransformerStack(config)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.width, config.tags)
        initialize(self, config.width)

    def forward(self, words: Int[Tensor, "B T"], spellings: Int[Tensor, "B T F"], lengths: Int[Tensor, "B"]) -> Output:
        """Logits of the tag of each word."""
        # Divided by the number of summed vectors, so that their sum does not hide the positions.
        summed = 1 + spellings.shape[-1]
        embedded = self.embedding(words, spellings) * math.sqrt(self.config.width / summed)
        if self.recurrent is not None:
            embedded, _ = self.recurrent(self.dropout(embedded), lengths=lengths)
        return Output(self.output(self.dropout(self.encoder(embedded, padding(lengths)))))


def _recurrent(config: TransformerTaggerConfig) -> Recurrent | None:
    layers = config.recurrent_layers
    return None if layers is None else Recurrent("lstm", config.width, config.width, layers, True, config.dropout)


MODEL, CONFIG = TransformerTagger, TransformerTaggerConfig

_SMALL = {
    "width": 128,
    "heads": 4,
    "feedforward": 256,
    "layers": 2,
    "norm": "pre",
    "positions": "relative",
    "dropout": 0.2,
}

PRESETS: dict[str, dict[str, Any]] = {
    "transformer-tagger": _SMALL,
    "birnn-transformer-tagger": {**_SMALL, "recurrent_layers": 1, "layers": 1},
    "transformer-tagger-base": {},
}
