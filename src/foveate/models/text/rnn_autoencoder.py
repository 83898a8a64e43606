"""Sequence auto-encoder (Dai and Le 2015, https://arxiv.org/abs/1511.01432): a recurrent network encodes a sentence
into one vector, another decodes the sentence from that vector.

Variational, the vector is drawn at random in training, and its distribution is kept near a normal one (Kingma and
Welling 2014, https://arxiv.org/abs/1312.6114; of sentences, Bowman et al. 2016, https://arxiv.org/abs/1511.06349)."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import at_least, check_literals
from foveate.nn import Recurrent, RecurrentDecoderState, SentenceReader, SentenceWriter
from foveate.nn.encoder_decoder import EncoderDecoder


@dataclass
class RNNAutoencoderConfig:
    """The sizes of a sequence auto-encoder."""

    vocabulary: FromData
    """Size of the vocabulary."""
    embedding: int = 256
    """Width of the word embeddings, which encoder and decoder share."""
    width: int = 512
    """Width C of the recurrent states and of the vector of a sentence."""
    layers: int = 1
    """Recurrent layers of encoder and decoder."""
    cell: Literal["lstm", "gru", "vanilla"] = "gru"
    """The recurrent cell."""
    bidirectional: bool = True
    """Read in both directions, or only from left to right."""
    dropout: float = 0.1
    """Share of embeddings and outputs that is dropped in training."""
    word_dropout: float = 0.0
    """Share of the words before each one that are hidden from the writer in training, so that it must read the vector
    (Bowman et al. 2016)."""
    divergence: float | None = None
    """Variational: what the divergence of a sentence's vector from the normal distribution counts in the loss, 1 as in
    the paper or less, so that the vector keeps more of the sentence; by default the vector is not random."""
    unknown: int = 3
    """Token that stands for a hidden word."""


class RNNAutoencoder(EncoderDecoder, nn.Module):
    """Encodes a sentence into a vector and decodes it."""

    def __init__(self, config: RNNAutoencoderConfig) -> None:
        super().__init__()
        check_literals(config)
        at_least(0, "divergence", 0.0 if config.divergence is None else config.divergence)
        self.config = config
        cell, embedding, width, layers = config.cell, config.embedding, config.width, config.layers
        words = nn.Embedding(config.vocabulary, embedding)
        reading = Recurrent(cell, embedding, width, layers, config.bidirectional, config.dropout)
        writing = Recurrent(cell, embedding + width, width, layers, dropout=config.dropout)
        self.reader = SentenceReader(words, reading, config.dropout)
        self.writer = SentenceWriter(words, writing, config.dropout)
        self.distribution = None if config.divergence is None else nn.Linear(width, 2 * width)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        source_lengths: Int[Tensor, "B"],
        target: Int[Tensor, "B T"],
        target_lengths: Int[Tensor, "B"] | None = None,
    ) -> Output:
        """Logits of the token after each target token."""
        if self.training and self.config.word_dropout:
            hidden = torch.rand(target.shape, device=target.device) < self.config.word_dropout
            hidden[:, 0] = False  # the start token is not a word
            target = target.masked_fill(hidden, self.config.unknown)
        if self.distribution is None:
            return Output(self.writer(self.vectors(source, source_lengths), target))
        mean, log_variance = self.distribution(self.reader(source, source_lengths)).chunk(2, -1)
        vectors = mean + (0.5 * log_variance).exp() * torch.randn_like(mean) if self.training else mean
        share = (self.config.divergence or 0.0) * normal_divergence(mean, log_variance)
        return Output(self.writer(vectors, target), divergence=share)

    def vectors(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, "B"]) -> Float[Tensor, "B C"]:
        """The vector of each sentence; variational, the mean of its distribution."""
        read = self.reader(source, source_lengths)
        return read if self.distribution is None else self.distribution(read)[:, : self.config.width]

    def start(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, "B"]) -> RecurrentDecoderState:
        return self.writer.start(self.vectors(source, source_lengths))

    def step(self, tokens: Int[Tensor, "R"], state: RecurrentDecoderState) -> Float[Tensor, "R N"]:
        return self.writer.step(tokens, state)


def normal_divergence(mean: Float[Tensor, "B C"], log_variance: Float[Tensor, "B C"]) -> Float[Tensor, "B"]:
    """The Kullback-Leibler divergence of independent normal distributions from those of mean 0 and variance 1, in
    nats."""
    return 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(-1)


MODEL, CONFIG = RNNAutoencoder, RNNAutoencoderConfig

PRESETS: dict[str, dict[str, Any]] = {
    "rnn-autoencoder": {},
}
