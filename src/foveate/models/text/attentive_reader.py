"""The Attentive Reader: answers a question about a text (Hermann et al. 2015, https://arxiv.org/abs/1506.03340).

Encode, attend, predict: a bidirectional recurrent network reads the text, another one the question; the question is the
query of attention to the text, and both vectors together decide.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import check_literals
from foveate.nn import Dropout, Recurrent, pooling


@dataclass
class AttentiveReaderConfig:
    """The sizes of a reader."""

    vocabulary: FromData
    """Size of the vocabulary that texts and questions share."""
    classes: FromData
    """Number of answers."""
    embedding: int = 256
    """Width of the word embeddings."""
    width: int = 512
    """Width C of the recurrent states, half of it for each direction."""
    layers: int = 1
    """Recurrent layers that read the text, and that read the question."""
    cell: Literal["lstm", "gru", "vanilla"] = "lstm"
    """The recurrent cell."""
    score: Literal["additive", "dot", "scaled-dot", "biaffine"] = "additive"
    """The score of the words of the text for the question."""
    score_activation: Literal["tanh", "relu", "sigmoid"] = "tanh"
    """With the additive score: the function g in u g(W1 k + W2 q + b)."""
    dropout: float = 0.1
    """Share of embeddings and of the joined vector that is dropped in training."""


class AttentiveReader(nn.Module):
    """Reads a text and a question and chooses an answer."""

    def __init__(self, config: AttentiveReaderConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.embedding)
        self.dropout = Dropout(config.dropout)
        self.text, self.question = (
            Recurrent(config.cell, config.embedding, config.width, config.layers, True, config.dropout)
            for _ in range(2)
        )
        self.attention = pooling("attention", config.width, config.score, False, config.score_activation)
        self.join = nn.Linear(2 * config.width, config.width)
        self.output = nn.Linear(config.width, config.classes)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, "B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, "B"],
    ) -> Output:
        """Logits (B, 1, N) of the answers to the questions `target` about the texts `source`."""
        encoded, _ = self.text(self.dropout(self.embedding(source)), lengths=source_lengths)
        _, last = self.question(self.dropout(self.embedding(target)), lengths=target_lengths)
        query = last[0][-1]
        found = self.attention(encoded, source_lengths, query)
        joined = torch.tanh(self.join(torch.cat([found, query], -1)))
        return Output(self.output(self.dropout(joined))[:, None])


MODEL, CONFIG = AttentiveReader, AttentiveReaderConfig

PRESETS: dict[str, dict[str, Any]] = {
    "attentive-reader-tiny": {"embedding": 64, "width": 128, "cell": "gru"},
    "attentive-reader": {},
}
