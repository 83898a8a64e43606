"""The encoder of the Transformer (Vaswani et al. 2017) that labels a text, or each of its words."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from jaxtyping import Int
from torch import Tensor, nn

from foveate.attention import padding
from foveate.config import FromData
from foveate.contracts import Output
from foveate.nn import Dropout, Recurrent, StackConfig, TransformerStack, WordEmbedding, initialize, pooling


@dataclass(kw_only=True)
class TransformerEncoderConfig(StackConfig):
    """The sizes of the encoder, and what it labels."""

    vocabulary: FromData
    """Size of the vocabulary."""
    classes: FromData
    """Number of labels of a text or a word."""
    spellings: FromData = 1
    """With the head tokens: number of vectors of spelling features, which are added to those of the words."""
    head: Literal["text", "tokens"] = "text"
    """What gets a label: the text, or each of its words."""
    recurrent_layers: int | None = None
    """Layers of a bidirectional LSTM that reads the words first; the encoder reads its output. By default none."""
    pooling: Literal["attention", "mean", "first"] = "first"
    """What stands for a text: attention to the encoded words by a learned query, their mean, or the first one (the
    start token)."""
    score: Literal["additive", "dot", "scaled-dot", "biaffine"] = "additive"
    """With attention: the score of the places for the query."""
    score_activation: Literal["tanh", "relu", "sigmoid"] = "tanh"
    """With the additive score: the function g in u g(W1 k + W2 q + b)."""


class TransformerEncoder(nn.Module):
    """Embeds the words, encodes them, and classifies each, or one vector for all."""

    def __init__(self, config: TransformerEncoderConfig) -> None:
        super().__init__()
        self.config = config
        tags, width, layers = config.head == "tokens", config.width, config.recurrent_layers
        words = WordEmbedding(config.vocabulary, config.spellings, width) if tags else None
        self.embedding = words or nn.Embedding(config.vocabulary, width)
        self.recurrent = None if layers is None else Recurrent("lstm", width, width, layers, True, config.dropout)
        self.encoder = TransformerStack(config)
        activation = config.score_activation
        self.pooling = None if tags else pooling(config.pooling, width, config.score, activation=activation)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(width, config.classes)
        initialize(self, width)

    def forward(
        self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, "B"], spellings: Int[Tensor, "B T F"] | None = None
    ) -> Output:
        """Logits of the text's label, (B, 1, N), or with `spellings` of each word's, (B, T, N)."""
        words = self.embedding(tokens) if spellings is None else self.embedding(tokens, spellings)
        # Divided by the number of summed vectors, so that their sum does not hide the positions.
        summed = 1 if spellings is None else 1 + spellings.shape[-1]
        words = words * math.sqrt(self.config.width / summed)
        if self.recurrent is not None:
            words, _ = self.recurrent(self.dropout(words), lengths=lengths)
        encoded = self.encoder(words, padding(lengths))
        if self.pooling is not None:
            encoded = self.pooling(encoded, lengths)[:, None]
        return Output(self.output(self.dropout(encoded)))


MODEL, CONFIG = TransformerEncoder, TransformerEncoderConfig

_SMALL = {"width": 128, "heads": 4, "feedforward": 256, "layers": 2, "norm": "pre", "positions": "relative"}

_TAGGER = {**_SMALL, "head": "tokens", "dropout": 0.2}

PRESETS: dict[str, dict[str, Any]] = {
    "transformer-classifier": {**_SMALL, "dropout": 0.3, "pooling": "attention"},
    "transformer-classifier-base": {},
    "transformer-classifier-large": {"width": 1024, "heads": 16, "feedforward": 4096, "dropout": 0.3},
    "transformer-tagger": _TAGGER,
    "birnn-transformer-tagger": {**_TAGGER, "recurrent_layers": 1, "layers": 1},
    "transformer-tagger-base": {"head": "tokens"},
}
