"""A tag for each word, by a recurrent network: a transducer, which reads left to right and tags each word at once, or
one that has read both ways (Schuster and Paliwal 1997; Graves and Schmidhuber 2005)."""

from dataclasses import dataclass
from typing import Literal

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
    """Words with a vector of their own."""
    spellings: FromData
    """Vectors for features of spelling."""
    tags: FromData
    """How many tags there are."""
    embedding: int = 128
    """Width of the words' vectors."""
    width: int = 256
    """Width C of the recurrent states; both ways, half of it for each."""
    layers: int = 1
    """Recurrent layers."""
    cell: Literal["lstm", "gru", "vanilla"] = "lstm"
    """The recurrent cell."""
    bidirectional: bool = True
    """Read the sentence both ways, or left to right only: then a tag knows nothing of what comes after its word."""
    dropout: float = 0.3
    """Share of embeddings and states that is dropped in training."""


class RNNTagger(nn.Module):
    """Embeds the words, reads them in order, and scores the tags at each."""

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
        """Logits of each word's tag."""
        states, _ = self.recurrent(self.dropout(self.embedding(words, spellings)), lengths=lengths)
        return Output(self.output(self.dropout(states)))


MODEL, CONFIG = RNNTagger, RNNTaggerConfig

PRESETS = {
    "rnn-transducer": (
        "LSTM that reads left to right and tags each word before it sees the next",
        {"bidirectional": False},
    ),
    "birnn-tagger": (
        "LSTM that reads both ways, then tags each word (Graves and Schmidhuber 2005)",
        {},
    ),
}
