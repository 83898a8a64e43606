"""Hierarchical auto-encoder for paragraphs (Li, Luong and Jurafsky 2015, https://arxiv.org/abs/1506.01057): words make
sentence vectors, these a paragraph vector; it makes sentence vectors again, and these words.

A paragraph's last sentence is empty, which is how the writer says that the paragraph ends. What makes sentence vectors
reads at each step that of the sentence before, as the reader of words made it, so that all sentences of a paragraph are
trained at once.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Additive, Soft
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import check_literals
from foveate.nn import (
    BahdanauDecoder,
    FirstState,
    FixedVectorDecoder,
    Recurrent,
    RecurrentDecoderState,
    SentenceReader,
    SentenceWriter,
)


@dataclass
class HierarchicalAutoencoderConfig:
    """The sizes of a hierarchical auto-encoder, and whether its sentences attend to those that were read."""

    vocabulary: FromData
    """Size of the vocabulary."""
    embedding: int = 256
    """Width of the word embeddings, which reader and writer share."""
    width: int = 512
    """Width C of all recurrent states, and of a sentence's and a paragraph's vector."""
    layers: int = 1
    """Recurrent layers of each of the four networks."""
    cell: Literal["lstm", "gru", "vanilla"] = "gru"
    """The recurrent cell."""
    bidirectional: bool = True
    """Read words and sentences both ways, or left to right only."""
    score: Literal["none", "additive"] = "none"
    """How a sentence that is written scores those that were read; "none" leaves it the paragraph's vector."""
    dropout: float = 0.1
    """Share of embeddings and outputs that is dropped in training."""


class HierarchicalAutoencoder(nn.Module):
    """Reads a paragraph into a vector, sentence by sentence, and writes it again."""

    def __init__(self, config: HierarchicalAutoencoderConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config = config
        cell, embedding, width, layers = config.cell, config.embedding, config.width, config.layers
        words = nn.Embedding(config.vocabulary, embedding)
        reading = Recurrent(cell, embedding, width, layers, config.bidirectional, config.dropout)
        writing = Recurrent(cell, embedding + width, width, layers, dropout=config.dropout)
        self.reader = SentenceReader(words, reading, config.dropout)
        self.paragraph_reader = Recurrent(cell, width, width, layers, config.bidirectional, config.dropout)
        self.planner = _planner(config)
        self.first = FirstState(self.planner.recurrent)
        self.writer = SentenceWriter(words, writing, config.dropout)

    def forward(
        self,
        source: Int[Tensor, "P S"],
        source_lengths: Int[Tensor, "P"],
        paragraphs: Int[Tensor, "B K"],
        paragraph_lengths: Int[Tensor, "B"],
        target: Int[Tensor, "P T"],
    ) -> Output:
        """Logits of the token after each target token, for the P sentences of B paragraphs one below the other.

        `paragraphs` has the rows of each paragraph's sentences, filled up with any; its last sentence is empty.
        """
        sentences, state = self._read(source, source_lengths, paragraphs, paragraph_lengths)
        before = torch.cat([torch.zeros_like(sentences[:, :1]), sentences[:, :-1]], 1)
        planned, _ = self.planner(before, state)
        real = torch.arange(paragraphs.shape[1], device=source.device) < paragraph_lengths[:, None]
        return Output(self.writer(planned[real], target))

    def vectors(
        self,
        source: Int[Tensor, "P S"],
        source_lengths: Int[Tensor, "P"],
        paragraphs: Int[Tensor, "B K"],
        paragraph_lengths: Int[Tensor, "B"],
    ) -> Float[Tensor, "B C"]:
        """What the model keeps of each paragraph; where it attends, it also keeps the sentences' vectors."""
        sentences = self.reader(source, source_lengths)[paragraphs]
        _, last = self.paragraph_reader(sentences, lengths=paragraph_lengths)
        return last[0][-1]

    def start(
        self,
        source: Int[Tensor, "P S"],
        source_lengths: Int[Tensor, "P"],
        paragraphs: Int[Tensor, "B K"],
        paragraph_lengths: Int[Tensor, "B"],
    ) -> RecurrentDecoderState:
        """Read the paragraphs; the state before their first sentences."""
        return self._read(source, source_lengths, paragraphs, paragraph_lengths)[1]

    def plan(self, before: Float[Tensor, "R C"], state: RecurrentDecoderState) -> Float[Tensor, "R C"]:
        """The vector of each paragraph's next sentence, for `writer` to write; changes the state in place.

        `before` has the vectors of the sentences before, by `reader`; zeros for the first.
        """
        planned, _ = self.planner(before[:, None], state)
        return planned.squeeze(1)

    def _read(
        self, source: Tensor, source_lengths: Tensor, paragraphs: Tensor, paragraph_lengths: Tensor
    ) -> tuple[Float[Tensor, "B K C"], RecurrentDecoderState]:
        """The vector of each sentence, and the planner's state before the first."""
        sentences = self.reader(source, source_lengths)[paragraphs]
        read, last = self.paragraph_reader(sentences, lengths=paragraph_lengths)
        return sentences, self.planner.start(self.first(last[0][-1]), read, paragraph_lengths)


def _planner(config: HierarchicalAutoencoderConfig) -> FixedVectorDecoder | BahdanauDecoder:
    """Makes sentence vectors from a paragraph's."""
    width = config.width

    def recurrent(further_width: int) -> Recurrent:
        return Recurrent(config.cell, width + further_width, width, config.layers, dropout=config.dropout)

    if config.score == "none":
        return FixedVectorDecoder(recurrent, width, every_step=False)
    return BahdanauDecoder(recurrent, width, width, Additive(width, width, width), Soft())


MODEL, CONFIG = HierarchicalAutoencoder, HierarchicalAutoencoderConfig

PRESETS = {
    "hierarchical-autoencoder": ("GRUs that keep a paragraph in one vector, for a laptop", {}),
    "hierarchical-autoencoder-attentive": (
        "The same, whose sentences attend to those that were read",
        {"score": "additive"},
    ),
    "hierarchical-autoencoder-large": (
        "LSTMs of the paper's width (Li et al. 2015), attentive",
        {"embedding": 1000, "width": 1000, "cell": "lstm", "score": "additive", "dropout": 0.2},
    ),
}
