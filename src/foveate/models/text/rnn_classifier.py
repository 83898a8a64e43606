"""Recurrent classifiers: an acceptor, which classifies its last state, and a classifier with attention pooling.

The one with attention is the word level of Yang et al. 2016 (Hierarchical Attention Networks for Document
Classification, https://aclanthology.org/N16-1174)."""

from dataclasses import dataclass
from typing import Any, Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import check_literals
from foveate.nn import Dropout, Recurrent, SentenceReader, pooling, word_vectors


@dataclass
class RNNClassifierConfig:
    """The sizes of a recurrent classifier."""

    vocabulary: FromData
    """Size of the vocabulary."""
    classes: FromData
    """Number of classes."""
    embedding: int = 200
    """Width of the word embeddings."""
    width: int = 100
    """Width C of the recurrent states; a bidirectional layer gives half to each direction."""
    layers: int = 1
    """Recurrent layers."""
    cell: Literal["lstm", "gru", "vanilla"] = "gru"
    """The recurrent cell."""
    bidirectional: bool = True
    """Read in both directions, or only from left to right."""
    pooling: Literal["last", "mean", "attention"] = "attention"
    """Classify the last state, the mean of all states, or attention to them by a query."""
    query: Literal["learned", "last"] = "learned"
    """With attention: a learned query for all texts, or the last state of the text."""
    score: Literal["additive", "dot", "scaled-dot", "biaffine"] = "additive"
    """With attention: the score of the states for the query."""
    score_activation: Literal["tanh", "relu", "sigmoid"] = "tanh"
    """With the additive score: the function g in u g(W1 k + W2 q + b)."""
    dropout: float = 0.5
    """Share of embeddings and of the pooled vector that is dropped in training."""


class RNNClassifier(nn.Module):
    """Encodes a text into one vector and classifies it."""

    def __init__(self, config: RNNClassifierConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config = config
        recurrent = Recurrent(
            config.cell, config.embedding, config.width, config.layers, config.bidirectional, config.dropout
        )
        pooled = pooling(config.pooling, config.width, config.score, config.query == "learned", config.score_activation)
        self.reader = SentenceReader(
            word_vectors(config.vocabulary, config.embedding), recurrent, config.dropout, pooled
        )
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.width, config.classes)

    def forward(self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, "B"]) -> Output:
        """Logits of the classes, (B, 1, N)."""
        vector = self.vector(tokens, lengths)
        return Output(self.output(self.dropout(vector))[:, None])

    def vector(self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "B C"]:
        """The pooled vector of each text."""
        return self.reader(tokens, lengths)


MODEL, CONFIG = RNNClassifier, RNNClassifierConfig

PRESETS: dict[str, dict[str, Any]] = {
    "rnn-acceptor": {"cell": "lstm", "bidirectional": False, "pooling": "last"},
    "rnn-acceptor-large": {"cell": "lstm", "bidirectional": False, "pooling": "last", "embedding": 512, "width": 1024},
    "rnn-attentive-classifier": {},
    "rnn-own-query-classifier": {"query": "last", "score": "biaffine"},
}
