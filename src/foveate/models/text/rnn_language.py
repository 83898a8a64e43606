"""Recurrent language model (Mikolov et al. 2010; Zaremba et al. 2014, https://arxiv.org/abs/1409.2329), optionally with
a condition: the vector c of a category, or any vector, is an input of every step, s_{j+1} = R(s_j, [t_j; c])."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import check_literals
from foveate.nn import Dropout, Recurrent, tie_output, word_vectors
from foveate.nn.recurrent import RecurrentState

Condition = Int[Tensor, "B"] | Float[Tensor, "B D"]
"""Numbers of conditions, or the vectors themselves."""


@dataclass
class RNNLanguageConfig:
    """The sizes of a recurrent language model."""

    vocabulary: FromData
    """Size of the vocabulary."""
    conditions: FromData = 1
    """Number of conditions; condition 0 means none."""
    embedding: int = 256
    """Width of the word embeddings."""
    width: int = 256
    """Width C of the recurrent states."""
    layers: int = 1
    """Recurrent layers."""
    cell: Literal["lstm", "gru", "vanilla"] = "lstm"
    """The recurrent cell."""
    tie: bool = False
    """Use the embedding as the weights of the output layer; needs embedding = width."""
    dropout: float = 0.2
    """Share of embeddings, of the inputs of layers and of outputs that is dropped in training."""
    condition: int | None = None
    """Width of the vector of a condition; None for a model without conditions."""
    condition_dropout: float = 0.1
    """Share of training passages with condition 0 instead, so that the model also works without a condition."""


@dataclass
class LanguageState:
    """The state of the model, one row (the second dimension of `hidden`) for each text."""

    hidden: RecurrentState
    condition: Float[Tensor, "R D"]
    """The vector c of each text; of width 0 in a model without conditions."""

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        self.hidden = tuple(part[:, rows] for part in self.hidden)
        self.condition = self.condition[rows]


class RNNLanguage(nn.Module):
    """Predicts the next token of a text."""

    def __init__(self, config: RNNLanguageConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config = config
        self.embedding = word_vectors(config.vocabulary, config.embedding)
        self.condition = None if config.condition is None else nn.Embedding(config.conditions, config.condition)
        self.dropout = Dropout(config.dropout)
        input_width = config.embedding + (config.condition or 0)
        self.recurrent = Recurrent(config.cell, input_width, config.width, config.layers, dropout=config.dropout)
        self.output = nn.Linear(config.width, config.vocabulary)
        if config.tie:
            tie_output(self.output, self.embedding)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"] | None = None,
        condition: Condition | None = None,
    ) -> Output:
        """Logits of the token after each token, (B, T, N). Condition 0 means none; vectors are taken as they are."""
        if self.training and condition is not None and not condition.is_floating_point():
            hidden = torch.rand(condition.shape, device=condition.device) < self.config.condition_dropout
            condition = condition.masked_fill(hidden, 0)
        outputs, _ = self.recurrent(self._inputs(tokens, self._vectors(len(tokens), condition)))
        return Output(self.output(self.dropout(outputs)))

    def prefill(
        self,
        tokens: Int[Tensor, "B T"],
        lengths: Int[Tensor, "B"],
        condition: Condition | None = None,
    ) -> tuple[Float[Tensor, "B N"], LanguageState]:
        """Read prompts of at least one token each; the logits of their next tokens and the state to go on from."""
        vectors = self._vectors(len(tokens), condition)
        _, hidden = self.recurrent(self._inputs(tokens, vectors), lengths=lengths)
        return self.output(self.dropout(hidden[0][-1])), LanguageState(hidden, vectors)

    def step(self, tokens: Int[Tensor, "R"], state: LanguageState) -> Float[Tensor, "R N"]:
        outputs, state.hidden = self.recurrent(self._inputs(tokens[:, None], state.condition), state.hidden)
        return self.output(self.dropout(outputs.squeeze(1)))

    def _vectors(self, rows: int, condition: Condition | None) -> Float[Tensor, "B D"]:
        """The vector c of each text."""
        if self.condition is None:
            return self.embedding.weight.new_empty(rows, 0)
        if condition is None:
            condition = torch.zeros(rows, dtype=torch.long, device=self.embedding.weight.device)
        return condition if condition.is_floating_point() else self.condition(condition)

    def _inputs(self, tokens: Int[Tensor, "R T"], vectors: Float[Tensor, "R D"]) -> Float[Tensor, "R T F"]:
        """Concatenate the embedding of each word and the vector of its text: [t_j; c]."""
        words = self.dropout(self.embedding(tokens))
        return torch.cat([words, vectors[:, None].expand(-1, tokens.shape[1], -1)], -1)


MODEL, CONFIG = RNNLanguage, RNNLanguageConfig

PRESETS: dict[str, dict[str, Any]] = {
    "rnn-language": {"embedding": 320, "width": 320, "tie": True},
    "rnn-conditioned": {"embedding": 320, "width": 320, "tie": True, "condition": 32},
    "rnn-language-medium": {"embedding": 650, "width": 650, "layers": 2, "dropout": 0.5},
    "rnn-language-large": {"embedding": 1500, "width": 1500, "layers": 2, "dropout": 0.65},
}

SIZES: dict[str, dict[str, int]] = {
    **{name: {"vocabulary": 10_000} for name in ("rnn-language-medium", "rnn-language-large")},
}
"""The sizes of the data of a preset's paper, which other data replaces."""
