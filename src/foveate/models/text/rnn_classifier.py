"""Recurrent classifiers: an acceptor, which decides by its last state, and encode - attend - predict.

The attentive one is the word level of Yang et al. 2016 (Hierarchical Attention Networks for Document Classification,
https://aclanthology.org/N16-1174).
"""

from dataclasses import dataclass
from typing import Literal

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
    """How many classes there are to decide between."""
    embedding: int = 200
    """Width of the word embeddings."""
    width: int = 100
    """Width C of the recurrent states; both ways, each direction gets half."""
    layers: int = 1
    """Recurrent layers."""
    cell: Literal["lstm", "gru", "vanilla"] = "gru"
    """The recurrent cell."""
    bidirectional: bool = True
    """Read the text both ways, or left to right only."""
    pooling: Literal["last", "mean", "attention"] = "attention"
    """Decide by the state after the last word, the mean of all states, or what a query sees in them."""
    query: Literal["learned", "last"] = "learned"
    """With attention: ask one learned query of every text, or the text's own last state."""
    score: Literal["additive", "dot", "scaled-dot", "biaffine"] = "additive"
    """With attention: how the query scores the states."""
    dropout: float = 0.5
    """Share of embeddings and of the text's vector that is dropped in training."""


class RNNClassifier(nn.Module):
    """Reads a text word by word, makes one vector of it, and decides."""

    def __init__(self, config: RNNClassifierConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config = config
        recurrent = Recurrent(
            config.cell, config.embedding, config.width, config.layers, config.bidirectional, config.dropout
        )
        pooled = pooling(config.pooling, config.width, config.score, learned=config.query == "learned")
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
        """The text as one vector."""
        return self.reader(tokens, lengths)


MODEL, CONFIG = RNNClassifier, RNNClassifierConfig

PRESETS = {
    "rnn-acceptor": (
        "LSTM that reads left to right and decides by its last state",
        {"cell": "lstm", "bidirectional": False, "pooling": "last"},
    ),
    "rnn-acceptor-large": (
        "The same at the size of Dai and Le 2015: 1,024 cells, embeddings of 512",
        {"cell": "lstm", "bidirectional": False, "pooling": "last", "embedding": 512, "width": 1024},
    ),
    "rnn-attentive-classifier": (
        "GRU both ways, additive attention with a learned query (Yang et al. 2016, their sizes)",
        {},
    ),
    "rnn-own-query-classifier": (
        "The same, but each text asks itself: its last state is the query of a biaffine score",
        {"query": "last", "score": "biaffine"},
    ),
}
