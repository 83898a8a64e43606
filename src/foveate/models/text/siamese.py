"""Siamese networks: two texts are read by the same encoder, and their vectors compared: do they belong together?

Bromley et al. 1993, Signature Verification using a "Siamese" Time Delay Neural Network; for sentences Mueller and
Thyagarajan 2016. The features that are compared are those of Mou et al. 2016 (https://arxiv.org/abs/1512.08422).
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError, check_literals
from foveate.nn import Dropout, Recurrent, SentenceReader, pooling


@dataclass
class SiameseConfig:
    """The sizes of the encoder, how one vector is made of a text, and how two are compared."""

    src_vocab: FromData
    """Size of the first text's vocabulary."""
    tgt_vocab: FromData
    """Size of the second text's vocabulary."""
    embedding: int = 128
    """Width of the word embeddings."""
    width: int = 256
    """Width C of the recurrent states; both ways, each direction gets half."""
    layers: int = 1
    """Recurrent layers."""
    cell: Literal["lstm", "gru", "vanilla"] = "gru"
    """The recurrent cell."""
    bidirectional: bool = True
    """Read the texts both ways, or left to right only."""
    one_encoder: bool = True
    """The same encoder for both texts (one vocabulary), or one with weights of its own for each."""
    pooling: Literal["last", "mean", "attention"] = "attention"
    """A text's vector: the state after the last word, the mean of all states, or what a learned query sees in them."""
    score: Literal["additive", "dot", "scaled-dot", "biaffine"] = "additive"
    """With attention: how the query scores the states."""
    compare: Literal["features", "biaffine"] = "features"
    """Decide by the product and the difference of both vectors, or by a learned biaffine form of them."""
    dropout: float = 0.2
    """Share of embeddings and of vectors that is dropped in training."""


class Siamese(nn.Module):
    """Reads two texts, each without knowing the other, and decides whether they belong together."""

    def __init__(self, config: SiameseConfig) -> None:
        super().__init__()
        check_literals(config)
        if config.one_encoder and config.src_vocab != config.tgt_vocab:
            raise UserError(
                f"one encoder for both texts needs one vocabulary, but theirs have {config.src_vocab} and "
                f"{config.tgt_vocab} entries; share it, or set one_encoder to false"
            )
        self.config = config
        self.source_encoder = _encoder(config, config.src_vocab)
        self.target_encoder = self.source_encoder if config.one_encoder else _encoder(config, config.tgt_vocab)
        self.dropout = Dropout(config.dropout)
        width = config.width
        self.compare = ByFeatures(config) if config.compare == "features" else nn.Bilinear(width, width, 2)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, "B"],
        target: Int[Tensor, "A T"],
        target_lengths: Int[Tensor, "A"],
        others: Int[Tensor, "B"] | None = None,
    ) -> Output:
        """Logits of "no" and "yes" for each pair, (B, 1, 2); with `others` also for each source with the target of
        the row that `others` names, (B, 2, 2): each text is read once and compared twice. Targets behind the first B
        are there for `others` alone."""
        first = self.dropout(self.source_encoder(source, source_lengths))
        second = self.dropout(self.target_encoder(target, target_lengths))
        own = second[: len(first)]
        targets = own[:, None] if others is None else torch.stack([own, second[others]], 1)
        return Output(self.compare(first[:, None].expand_as(targets), targets))


class ByFeatures(nn.Module):
    """Decides by what two vectors share and by how they differ: `[u * v, |u - v|]`, the same in either order."""

    def __init__(self, config: SiameseConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(2 * config.width, config.width)
        self.dropout = Dropout(config.dropout)
        self.outer = nn.Linear(config.width, 2)

    def forward(self, first: Float[Tensor, "B T C"], second: Float[Tensor, "B T C"]) -> Float[Tensor, "B T 2"]:
        features = torch.cat([first * second, (first - second).abs()], -1)
        return self.outer(self.dropout(torch.relu(self.inner(features))))


def _encoder(config: SiameseConfig, vocabulary: int) -> SentenceReader:
    recurrent = Recurrent(
        config.cell, config.embedding, config.width, config.layers, config.bidirectional, config.dropout
    )
    pooled = pooling(config.pooling, config.width, config.score)
    return SentenceReader(nn.Embedding(vocabulary, config.embedding), recurrent, config.dropout, pooled)


MODEL, CONFIG = Siamese, SiameseConfig

PRESETS = {
    "siamese-acceptor": (
        "LSTM that reads each text left to right; their last states are compared (Mueller and Thyagarajan 2016)",
        {"cell": "lstm", "bidirectional": False, "pooling": "last"},
    ),
    "siamese-attentive": (
        "GRU both ways, additive attention with a learned query; what each text gives is compared",
        {},
    ),
}
