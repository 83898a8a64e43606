"""Siamese networks: encode two texts by the same encoder and compare their vectors, to predict whether they match.

Bromley et al. 1993, Signature Verification using a "Siamese" Time Delay Neural Network; for sentences Mueller and
Thyagarajan 2016. The features of the comparison are those of Mou et al. 2016 (https://arxiv.org/abs/1512.08422).

A bag of words reads no order: whether texts translate each other, words tell without it. Its vectors are learned where
those of latent semantic analysis are counted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import UserError, check_literals
from foveate.nn import Dropout, Recurrent, SentenceReader, pooling

SMALL = 0.01
"""Deviation of the first word vectors of a bag: a cosine has no scale, and short vectors turn sooner at a rate."""


@dataclass
class SiameseConfig:
    """The sizes of the encoder, the pooling and the comparison."""

    src_vocab: FromData
    """Size of the first text's vocabulary."""
    tgt_vocab: FromData
    """Size of the second text's vocabulary."""
    embedding: int = 128
    """Width of the word embeddings."""
    width: int = 256
    """Width C of the recurrent states; a bidirectional layer gives half to each direction. Of a bag of words, the width
    of the word embeddings."""
    layers: int = 1
    """Recurrent layers."""
    cell: Literal["lstm", "gru", "vanilla", "none"] = "gru"
    """The recurrent cell; without any, a text is a bag of words, whose states are their embeddings."""
    bidirectional: bool = True
    """Read in both directions, or only from left to right."""
    one_encoder: bool = True
    """Use one encoder for both texts (with one vocabulary), or one for each."""
    pooling: Literal["last", "mean", "attention"] = "attention"
    """The vector of a text: the last state, the mean of all states, or attention to them by a learned query."""
    score: Literal["additive", "dot", "scaled-dot", "biaffine"] = "additive"
    """With attention: the score of the states for the query."""
    score_activation: Literal["tanh", "relu", "sigmoid"] = "tanh"
    """With the additive score: the function g in u g(W1 k + W2 q + b)."""
    compare: Literal["features", "biaffine", "cosine"] = "features"
    """Classify the product and the difference of both vectors, a learned bilinear form of them, or their cosine."""
    dropout: float = 0.2
    """Share of embeddings and of vectors that is dropped in training."""


class Siamese(nn.Module):
    """Encodes two texts independently and predicts whether they match."""

    def __init__(self, config: SiameseConfig) -> None:
        super().__init__()
        check_literals(config)
        if config.one_encoder and config.src_vocab != config.tgt_vocab:
            raise UserError(
                f"one encoder for both texts needs one vocabulary, but theirs have {config.src_vocab} and "
                f"{config.tgt_vocab} entries; share it, or set one_encoder to false"
            )
        if config.cell == "none" and config.pooling == "last":
            raise UserError("a bag of words has no last state: pooling is mean or attention where cell is none")
        self.config = config
        self.source_encoder = _encoder(config, config.src_vocab)
        self.target_encoder = self.source_encoder if config.one_encoder else _encoder(config, config.tgt_vocab)
        self.dropout = Dropout(config.dropout)
        comparisons: dict[str, Callable[[], nn.Module]] = {
            "features": lambda: ByFeatures(config),
            "biaffine": lambda: nn.Bilinear(config.width, config.width, 2),
            "cosine": ByCosine,
        }
        self.compare = comparisons[config.compare]()

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, "B"],
        target: Int[Tensor, "A T"],
        target_lengths: Int[Tensor, "A"],
        others: Int[Tensor, "B"] | None = None,
    ) -> Output:
        """Logits of "no" and "yes" for each pair, (B, 1, 2).

        With `others`, also for each source and the target of row `others`, (B, 2, 2); each text is encoded once.
        Targets after the first B are only used by `others`.
        """
        first = self.dropout(self.source_encoder(source, source_lengths))
        second = self.dropout(self.target_encoder(target, target_lengths))
        own = second[: len(first)]
        targets = own[:, None] if others is None else torch.stack([own, second[others]], 1)
        return Output(self.compare(first[:, None].expand_as(targets), targets))


class ByFeatures(nn.Module):
    """Classifies `[u * v, |u - v|]`, which is symmetric in both vectors."""

    def __init__(self, config: SiameseConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(2 * config.width, config.width)
        self.dropout = Dropout(config.dropout)
        self.outer = nn.Linear(config.width, 2)

    def forward(self, first: Float[Tensor, "B T C"], second: Float[Tensor, "B T C"]) -> Float[Tensor, "B T 2"]:
        features = torch.cat([first * second, (first - second).abs()], -1)
        return self.outer(self.dropout(torch.relu(self.inner(features))))


class ByCosine(nn.Module):
    """Classifies the cosine of both vectors by a learned threshold and steepness."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.bias = nn.Parameter(torch.tensor(10.0)), nn.Parameter(torch.tensor(-5.0))

    def forward(self, first: Float[Tensor, "B T C"], second: Float[Tensor, "B T C"]) -> Float[Tensor, "B T 2"]:
        yes = self.scale * torch.cosine_similarity(first, second, dim=-1) + self.bias
        return torch.stack([torch.zeros_like(yes), yes], -1)


class BagReader(nn.Module):
    """Encodes a text into one vector by a `pooling` of its word embeddings, in whatever order they stand."""

    def __init__(self, embedding: nn.Embedding, dropout: float, pooling: nn.Module) -> None:
        super().__init__()
        self.embedding, self.dropout, self.pooling = embedding, Dropout(dropout), pooling

    def forward(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, "B"]) -> Float[Tensor, "B C"]:
        return self.pooling(self.dropout(self.embedding(source)), source_lengths)


def _encoder(config: SiameseConfig, vocabulary: int) -> nn.Module:
    if config.cell == "none":
        pooled = pooling(config.pooling, config.width, config.score, activation=config.score_activation)
        table = nn.Embedding(vocabulary, config.width)
        nn.init.normal_(table.weight, std=SMALL)
        return BagReader(table, config.dropout, pooled)
    recurrent = Recurrent(
        config.cell, config.embedding, config.width, config.layers, config.bidirectional, config.dropout
    )
    pooled = pooling(config.pooling, config.width, config.score, activation=config.score_activation)
    return SentenceReader(nn.Embedding(vocabulary, config.embedding), recurrent, config.dropout, pooled)


MODEL, CONFIG = Siamese, SiameseConfig

PRESETS: dict[str, dict[str, Any]] = {
    "siamese-acceptor": {"cell": "lstm", "bidirectional": False, "pooling": "last"},
    "siamese-attentive": {},
    "siamese-bag": {"cell": "none", "compare": "cosine"},
}
