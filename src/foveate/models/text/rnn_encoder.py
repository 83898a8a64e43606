"""Recurrent networks that label a text, or each of its words.

An acceptor classifies its last state; with attention pooling it is the word level of Yang et al. 2016 (Hierarchical
Attention Networks for Document Classification, https://aclanthology.org/N16-1174). A transducer tags a word before it
reads the next one, a bidirectional tagger in the light of all (Schuster and Paliwal 1997; Graves and Schmidhuber 2005).
"""

from dataclasses import dataclass
from typing import Any, Literal

from jaxtyping import Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import check_literals
from foveate.nn import Dropout, Recurrent, WordEmbedding, pooling, word_vectors


@dataclass
class RNNEncoderConfig:
    """The sizes of a recurrent network, and what it labels."""

    vocabulary: FromData
    """Size of the vocabulary."""
    classes: FromData
    """Number of labels of a text or a word."""
    spellings: FromData = 1
    """With the head tokens: number of vectors of spelling features, which are added to those of the words."""
    head: Literal["text", "tokens"] = "text"
    """What gets a label: the text, or each of its words."""
    embedding: int = 200
    """Width of the word embeddings."""
    width: int = 100
    """Width C of the recurrent states; a bidirectional layer gives half to each direction."""
    layers: int = 1
    """Recurrent layers."""
    cell: Literal["lstm", "gru", "vanilla"] = "gru"
    """The recurrent cell."""
    bidirectional: bool = True
    """Read in both directions, or only from left to right, so that a tag does not depend on later words."""
    pooling: Literal["last", "mean", "attention"] = "attention"
    """What stands for a text: the last state, the mean of all states, or attention to them by a query."""
    query: Literal["learned", "last"] = "learned"
    """With attention: a learned query for all texts, or the last state of the text."""
    score: Literal["additive", "dot", "scaled-dot", "biaffine"] = "additive"
    """With attention: the score of the states for the query."""
    score_activation: Literal["tanh", "relu", "sigmoid"] = "tanh"
    """With the additive score: the function g in u g(W1 k + W2 q + b)."""
    dropout: float = 0.5
    """Share of embeddings, and of what is classified, that is dropped in training."""


class RNNEncoder(nn.Module):
    """Embeds the words, encodes them, and classifies each, or one vector for all."""

    def __init__(self, config: RNNEncoderConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config = config
        tags, cell, layers, dropout = config.head == "tokens", config.cell, config.layers, config.dropout
        # Spelt words are drawn before the layers, plain ones after: each seed gives the weights that it always gave.
        spelt = WordEmbedding(config.vocabulary, config.spellings, config.embedding) if tags else None
        recurrent = Recurrent(cell, config.embedding, config.width, layers, config.bidirectional, dropout)
        learned, activation = config.query == "learned", config.score_activation
        pooled = None if tags else pooling(config.pooling, config.width, config.score, learned, activation)
        self.embedding = spelt or word_vectors(config.vocabulary, config.embedding)
        self.dropout = Dropout(dropout)
        self.recurrent = recurrent
        self.pooling = pooled
        self.output = nn.Linear(config.width, config.classes)

    def forward(
        self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, "B"], spellings: Int[Tensor, "B T F"] | None = None
    ) -> Output:
        """Logits of the text's label, (B, 1, N), or with `spellings` of each word's, (B, T, N)."""
        words = self.embedding(tokens) if spellings is None else self.embedding(tokens, spellings)
        states, last = self.recurrent(self.dropout(words), lengths=lengths)
        if self.pooling is not None:
            states = self.pooling(states, lengths, last[0][-1])[:, None]
        return Output(self.output(self.dropout(states)))


MODEL, CONFIG = RNNEncoder, RNNEncoderConfig

_ACCEPTOR = {"cell": "lstm", "bidirectional": False, "pooling": "last"}

_TAGGER = {"head": "tokens", "embedding": 128, "width": 256, "cell": "lstm", "dropout": 0.3}

PRESETS: dict[str, dict[str, Any]] = {
    "rnn-acceptor": _ACCEPTOR,
    "rnn-acceptor-large": {**_ACCEPTOR, "embedding": 512, "width": 1024},
    "rnn-attentive-classifier": {},
    "rnn-own-query-classifier": {"query": "last", "score": "biaffine"},
    "rnn-transducer": {**_TAGGER, "bidirectional": False},
    "birnn-tagger": _TAGGER,
    "deep-birnn-tagger": {**_TAGGER, "layers": 3},
}
