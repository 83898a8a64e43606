"""The encoder of the Transformer alone (Vaswani et al. 2017), with one decision about the whole text."""

import math
from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.nn import Dropout, EncoderConfig, TransformerEncoder, initialize, pooling


@dataclass(kw_only=True)
class TransformerClassifierConfig(EncoderConfig):
    """The sizes of the encoder, and how one vector is made of what it gives."""

    vocabulary: FromData
    """Size of the vocabulary."""
    classes: FromData
    """How many classes there are to decide between."""
    pooling: Literal["attention", "mean", "first"] = "first"
    """Decide by what a learned query sees in the encoded text, by its mean, or by its first place (START)."""
    score: Literal["additive", "dot", "scaled-dot", "biaffine"] = "additive"
    """With attention: how the query scores the places."""


class TransformerClassifier(nn.Module):
    """Reads a text at once, makes one vector of it, and decides."""

    def __init__(self, config: TransformerClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.encoder = TransformerEncoder(config)
        self.pooling = pooling(config.pooling, config.width, config.score)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.width, config.classes)
        initialize(self, config.width)

    def forward(self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, "B"]) -> Output:
        """Logits of the classes, (B, 1, N)."""
        return Output(self.output(self.dropout(self.vector(tokens, lengths)))[:, None])

    def vector(self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "B C"]:
        """The text as one vector."""
        encoded = self.encoder(self.embedding(tokens) * math.sqrt(self.config.width), lengths)
        return self.pooling(encoded, lengths)


MODEL, CONFIG = TransformerClassifier, TransformerClassifierConfig

PRESETS = {
    "transformer-classifier": (
        "2 blocks, width 128, 4 heads, pre-norm, relative positions, attention pooling: for thousands of texts",
        {
            "width": 128,
            "heads": 4,
            "feedforward": 256,
            "layers": 2,
            "norm": "pre",
            "positions": "relative",
            "dropout": 0.3,
            "pooling": "attention",
        },
    ),
    "transformer-classifier-base": (
        "6 blocks, width 512, 8 heads: the encoder of the paper's base model, decides by the first place",
        {},
    ),
    "transformer-classifier-large": (
        "6 blocks, width 1024, 16 heads: the encoder of the paper's big model",
        {"width": 1024, "heads": 16, "feedforward": 4096, "dropout": 0.3},
    ),
}
