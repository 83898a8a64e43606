"""The encoder of the Transformer (Vaswani et al. 2017) as a classifier of texts."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import padding
from foveate.config import FromData
from foveate.contracts import Output
from foveate.nn import Dropout, Recurrent, StackConfig, TransformerStack, initialize, pooling


@dataclass(kw_only=True)
class TransformerClassifierConfig(StackConfig):
    """The sizes of the encoder, and its pooling."""

    vocabulary: FromData
    """Size of the vocabulary."""
    classes: FromData
    """Number of classes."""
    recurrent_layers: int | None = None
    """Layers of a bidirectional LSTM that reads the text first; the encoder reads its output. By default none."""
    pooling: Literal["attention", "mean", "first"] = "first"
    """Classify attention to the encoded text by a learned query, its mean, or its first position (the start token)."""
    score: Literal["additive", "dot", "scaled-dot", "biaffine"] = "additive"
    """With attention: the score of the positions for the query."""
    score_activation: Literal["tanh", "relu", "sigmoid"] = "tanh"
    """With the additive score: the function g in u g(W1 k + W2 q + b)."""


class TransformerClassifier(nn.Module):
    """Encodes a text into one vector and classifies it."""

    def __init__(self, config: TransformerClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.recurrent = _recurrent(config)
        self.encoder = TransformerStack(config)
        self.pooling = pooling(config.pooling, config.width, config.score, activation=config.score_activation)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.width, config.classes)
        initialize(self, config.width)

    def forward(self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, "B"]) -> Output:
        """Logits of the classes, (B, 1, N)."""
        return Output(self.output(self.dropout(self.vector(tokens, lengths)))[:, None])

    def vector(self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "B C"]:
        """The pooled vector of each text."""
        embedded = self.embedding(tokens) * math.sqrt(self.config.width)
        if self.recurrent is not None:
            embedded, _ = self.recurrent(self.dropout(embedded), lengths=lengths)
        encoded = self.encoder(embedded, padding(lengths))
        return self.pooling(encoded, lengths)


def _recurrent(config: TransformerClassifierConfig) -> Recurrent | None:
    layers = config.recurrent_layers
    return None if layers is None else Recurrent("lstm", config.width, config.width, layers, True, config.dropout)


MODEL, CONFIG = TransformerClassifier, TransformerClassifierConfig

PRESETS: dict[str, dict[str, Any]] = {
    "transformer-classifier": {
        "width": 128,
        "heads": 4,
        "feedforward": 256,
        "layers": 2,
        "norm": "pre",
        "positions": "relative",
        "dropout": 0.3,
        "pooling": "attention",
    },
    "transformer-classifier-base": {},
    "transformer-classifier-large": {"width": 1024, "heads": 16, "feedforward": 4096, "dropout": 0.3},
}
