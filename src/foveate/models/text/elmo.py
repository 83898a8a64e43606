"""ELMo: word vectors from a language model that reads in both directions (Peters et al. 2018,
https://arxiv.org/abs/1802.05365).

K  characters of the longest word    M  places that are asked for    P  width of each direction    C  width of both, 2 P
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import one_of
from foveate.nn import Dropout
from foveate.nn.characters import CharacterEncoder
from foveate.nn.projected_lstm import ProjectedLSTM, reverse


@dataclass
class ElmoConfig:
    """The sizes of an ELMo. Defaults are those of the paper."""

    vocabulary: FromData
    """Number of words that can be predicted."""
    head: Literal["words", "none"] = "words"
    """What is computed: the logits of each word's neighbours, or the words' vectors, a learned mix of all layers."""
    characters: int = 262
    """Size of the vocabulary of characters."""
    character_width: int = 16
    """Width of the embeddings of characters."""
    filters: tuple[int, ...] = (32, 32, 64, 128, 256, 512, 1024)
    """Number of filters of one character, of two, of three, ..."""
    highways: int = 2
    """Highway layers after the filters."""
    cells: int = 4096
    """Cells of each LSTM."""
    width: int = 512
    """Width P of each direction, to which cells are projected."""
    layers: int = 2
    """LSTMs in each direction."""
    clip: float = 3.0
    """Greatest absolute value of cells and projections."""
    dropout: float = 0.1
    """Share of word vectors and of each LSTM's input that is dropped in training."""


class LayerMix(nn.Module):
    """`scale * sum of softmax(weights)_j h_j`: what a task makes of the layers (equation 1)."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(layers))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, layers: Float[Tensor, "L B T C"]) -> Float[Tensor, "B T C"]:
        return self.scale * torch.einsum("l,lbtc->btc", self.weights.softmax(0), layers)


class Elmo(nn.Module):
    """Two language models, from left to right and from right to left, that share their words and their output layer."""

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__()
        one_of("head", config.head, ("words", "none"))
        self.config = config
        self.words = CharacterEncoder(
            config.characters, config.character_width, config.filters, config.highways, config.width
        )
        self.forward_layers, self.backward_layers = (
            nn.ModuleList(
                ProjectedLSTM(config.width, config.cells, config.width, config.clip) for _ in range(config.layers)
            )
            for _ in range(2)
        )
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.width, config.vocabulary) if config.head == "words" else None
        self.mix = LayerMix(config.layers + 1) if config.head == "none" else None

    def forward(
        self,
        characters: Int[Tensor, "B T K"],
        lengths: Int[Tensor, "B"],
        places: Int[Tensor, "B M"] | None = None,
    ) -> Output:
        """Logits of the word after each word, then those of the word before each word: (B, 2 T, N).

        With `places`, the logits (B, M, N) of the words there, from both sides: what comes before and after a place
        must have a word, if only the begin or end of the text. Without a head, the vectors of all words: (B, T, C).
        """
        layers = self.layers(characters, lengths)
        if self.mix is not None:
            return Output(self.mix(layers))
        assert self.output is not None
        forward, backward = self.dropout(layers[-1]).chunk(2, -1)
        if places is None:
            return Output(self.output(torch.cat([forward, backward], 1)))
        sides = (_at(forward, places - 1), _at(backward, places + 1))
        return Output(sum(self.output(side).log_softmax(-1) for side in sides))

    def layers(self, characters: Int[Tensor, "B T K"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "L B T C"]:
        """The vectors of the words without context, then of each layer: those of both directions, concatenated."""
        words = self.dropout(self.words(characters))
        forward = self._read(words, self.forward_layers)
        backward = [reverse(x, lengths) for x in self._read(reverse(words, lengths), self.backward_layers)]
        return torch.stack([torch.cat(pair, -1) for pair in zip(forward, backward, strict=True)])

    def _read(self, x: Float[Tensor, "B T P"], lstms: nn.ModuleList) -> list[Float[Tensor, "B T P"]]:
        """The words and the outputs of the LSTMs, each of them added to its input but for the first."""
        found = [x]
        for number, lstm in enumerate(lstms):
            read = lstm(self.dropout(x) if number else x)
            x = x + read if number else read
            found.append(x)
        return found


def _at(x: Float[Tensor, "B T P"], places: Int[Tensor, "B M"]) -> Float[Tensor, "B M P"]:
    return x.gather(1, places[..., None].expand(-1, -1, x.shape[-1]))


MODEL, CONFIG = Elmo, ElmoConfig

PRESETS: dict[str, dict[str, Any]] = {
    "elmo": {},
    "elmo-tiny": {"filters": (16, 32, 64, 128), "highways": 1, "cells": 256, "width": 128},
}

SIZES: dict[str, dict[str, int]] = {"elmo": {"vocabulary": 793_471}}
"""The words of the One Billion Word Benchmark, which other data replaces."""
