"""Hierarchical auto-encoder for paragraphs (Li, Luong and Jurafsky 2015, https://arxiv.org/abs/1506.01057).

Words are encoded into sentence vectors, and these into a paragraph vector. It is decoded into sentence vectors, and
these into words. An empty last sentence marks the end of a paragraph. The input of each step of the sentence decoder is
the encoded vector of the sentence before, so all sentences of a paragraph are trained at once.
"""

from dataclasses import dataclass
from typing import Any, Literal

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
    """The sizes of a hierarchical auto-encoder, and whether its decoder attends to the encoded sentences."""

    vocabulary: FromData
    """Size of the vocabulary."""
    embedding: int = 256
    """Width of the word embeddings, which encoder and decoder share."""
    width: int = 512
    """Width C of all recurrent states and of the vectors of sentences and paragraphs."""
    layers: int = 1
    """Recurrent layers of each of the four networks."""
    cell: Literal["lstm", "gru", "vanilla"] = "gru"
    """The recurrent cell."""
    bidirectional: bool = True
    """Read words and sentences in both directions, or only from left to right."""
    score: Literal["none", "additive"] = "none"
    """The score of encoded sentences for a decoded one; "none" for a decoder without attention."""
    dropout: float = 0.1
    """Share of embeddings and outputs that is dropped in training."""


class HierarchicalAutoencoder(nn.Module):
    """Encodes a paragraph into a vector and decodes it."""

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
        """Logits of the token after each target token, for the P sentences of B paragraphs.

        `paragraphs` are the rows of the sentences of each paragraph, padded with any row. The last sentence of a
        paragraph is empty.
        """
        sentences, state = self._read(source, source_lengths, paragraphs, paragraph_lengths)
        before = torch.cat([torch.zeros_like(sentences[:, :1]), sentences[:, :-1]], 1)
        planned, _ = self.planner(before, state)
        padded = torch.arange(paragraphs.shape[1], device=source.device) >= paragraph_lengths[:, None]
        in_order = (
            padded.flatten().long().argsort(stable=True)[: len(target)]
        )  # indexing by a mask would wait for the device
        return Output(self.writer(planned.flatten(0, 1)[in_order], target))

    def vectors(
        self,
        source: Int[Tensor, "P S"],
        source_lengths: Int[Tensor, "P"],
        paragraphs: Int[Tensor, "B K"],
        paragraph_lengths: Int[Tensor, "B"],
    ) -> Float[Tensor, "B C"]:
        """The vector of each paragraph. A model with attention also uses the vectors of sentences."""
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
        """Encode the paragraphs; returns the state before their first sentences, whose vectors `plan` gives.

        No `prefill`: a sentence's vector has no logits. The `writer` of its words is a `Generator`.
        """
        return self._read(source, source_lengths, paragraphs, paragraph_lengths)[1]

    def plan(self, before: Float[Tensor, "R C"], state: RecurrentDecoderState) -> Float[Tensor, "R C"]:
        """The vector of the next sentence of each paragraph, an input of `writer`; changes the state in place.

        `before` are the vectors of the sentences before, from `reader`; zeros for the first sentence.
        """
        planned, _ = self.planner(before[:, None], state)
        return planned.squeeze(1)

    def _read(
        self, source: Tensor, source_lengths: Tensor, paragraphs: Tensor, paragraph_lengths: Tensor
    ) -> tuple[Float[Tensor, "B K C"], RecurrentDecoderState]:
        """The vector of each sentence, and the state of the planner before the first."""
        sentences = self.reader(source, source_lengths)[paragraphs]
        read, last = self.paragraph_reader(sentences, lengths=paragraph_lengths)
        return sentences, self.planner.start(self.first(last[0][-1]), read, paragraph_lengths)


def _planner(config: HierarchicalAutoencoderConfig) -> FixedVectorDecoder | BahdanauDecoder:
    """The decoder of sentence vectors from a paragraph vector."""
    width = config.width

    def recurrent(further_width: int) -> Recurrent:
        return Recurrent(config.cell, width + further_width, width, config.layers, dropout=config.dropout)

    if config.score == "none":
        return FixedVectorDecoder(recurrent, width, every_step=False)
    return BahdanauDecoder(recurrent, width, width, Additive(width, width, width), Soft())


MODEL, CONFIG = HierarchicalAutoencoder, HierarchicalAutoencoderConfig

PRESETS: dict[str, dict[str, Any]] = {
    "hierarchical-autoencoder": {},
    "hierarchical-autoencoder-attentive": {"score": "additive"},
    "hierarchical-autoencoder-large": {
        "embedding": 1000,
        "width": 1000,
        "cell": "lstm",
        "score": "additive",
        "dropout": 0.2,
    },
}
