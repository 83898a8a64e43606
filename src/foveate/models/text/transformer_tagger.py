"""The encoder of the Transformer (Vaswani et al. 2017) as a tagger of words."""

import math
from dataclasses import dataclass
from typing import Any

from jaxtyping import Int
from torch import Tensor, nn

from foveate.attention import padding
from foveate.config import FromData
from foveate.contracts import Output
from foveate.nn import Dropout, StackConfig, TransformerStack, WordEmbedding, initialize


@dataclass(kw_only=True)
class TransformerTaggerConfig(StackConfig):
    """The sizes of the encoder, of the vocabulary and of the tag set."""

    vocabulary: FromData
    """Number of words with a vector."""
    spellings: FromData
    """Number of vectors of spelling features."""
    tags: FromData
    """Number of tags."""


class TransformerTagger(nn.Module):
    """Embeds the words, encodes them and classifies each."""

    def __init__(self, config: TransformerTaggerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = WordEmbedding(config.vocabulary, config.spellings, config.width)
        self.encoder = TransformerStack(config)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.width, config.tags)
        initialize(self, config.width)

    def forward(self, words: Int[Tensor, "B T"], spellings: Int[Tensor, "B T F"], lengths: Int[Tensor, "B"]) -> Output:
        """Logits of the tag of each word."""
        # Divided by the number of summed vectors, so that their sum does not hide the positions.
        summed = 1 + spellings.shape[-1]
        embedded = self.embedding(words, spellings) * math.sqrt(self.config.width / summed)
        return Output(self.output(self.dropout(self.encoder(embedded, padding(lengths)))))


MODEL, CONFIG = TransformerTagger, TransformerTaggerConfig

PRESETS: dict[str, dict[str, Any]] = {
    "transformer-tagger": {
        "width": 128,
        "heads": 4,
        "feedforward": 256,
        "layers": 2,
        "norm": "pre",
        "positions": "relative",
        "dropout": 0.2,
    },
    "transformer-tagger-base": {},
}
