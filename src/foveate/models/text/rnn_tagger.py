"""Recurrent taggers: a transducer, which tags each word from left to right, and a bidirectional tagger (Schuster and
Paliwal 1997; Graves and Schmidhuber 2005)."""

from dataclasses import dataclass
from typing import Any, Literal

from jaxtyping import Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import check_literals
from foveate.nn import Dropout, Recurrent, WordEmbedding


@dataclass
class RNNTaggerConfig:
    """The sizes of a recurrent tagger."""

    vocabulary: FromData
    """Number of words with a vector."""
    spellings: FromData
    """Number of vectors of spelling features."""
    tags: FromData
    """Number of tags."""
    embedding: int = 128
    """Width of the word embeddings."""
    width: int = 256
    """Width C of the recurrent states; a bidirectional layer gives half to each direction."""
    layers: int = 1
    """Recurrent layers."""
    cell: Literal["lstm", "gru", "vanilla"] = "lstm"
    """The recurrent cell."""
    bidirectional: bool = True
    """Read in both directions, or only from left to right, so that a tag does not depend on later words."""
    dropout: float = 0.3
    """Share of embeddings and states that is dropped in training."""


class RNNTagger(nn.Module):
    """Embeds the words, encodes them and classifies each."""

    def __init__(self, config: RNNTaggerConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config = config
        self.embedding = WordEmbedding(config.vocabulary, config.spellings, config.embedding)
        self.dropout = Dropout(config.dropout)
        self.recurrent = Recurrent(
            config.cell, config.embedding, config.width, config.layers, config.bidirectional, config.dropout
        )
        self.output = nn.Linear(config.width, config.tags)

    def forward(self, words: Int[Tensor, "B T"], spellings: Int[Tensor, "B T F"], lengths: Int[Tensor, "B"]) -> Output:
        """Logits of the tag of each word."""
        states, _ = self.recurrent(self.dropout(self.embedding(words, spellings)), lengths=lengths)
        return Output(self.output(self.dropout(states)))


MODEL, CONFIG = RNNTagger, RNNTaggerConfig

PRESETS: dict[str, dict[str, Any]] = {
    "rnn-transducer": {"bidirectional": False},
    "birnn-tagger": {},
    "deep-birnn-tagger": {"layers": 3},
}
