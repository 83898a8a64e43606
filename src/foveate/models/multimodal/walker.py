"""Follows instructions: "Listen, attend and walk" (Mei et al. 2016, https://arxiv.org/abs/1506.04089).

A bidirectional LSTM reads the instruction. At each step the decoder observes the world, attends to the instruction and
chooses an action. The aligner is multi-level: it scores and averages the embedding of each word joined with its state.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Additive, Memory, attend, padding
from foveate.config import FromData
from foveate.contracts import Output
from foveate.errors import check_literals
from foveate.nn import Dropout, Recurrent
from foveate.nn.recurrent import RecurrentState


@dataclass
class WalkerConfig:
    """The sizes of a walker. Defaults are those of the authors' code."""

    vocabulary: FromData
    """Number of words, special tokens included."""
    features: FromData
    """Numbers F in an observation of the world."""
    actions: FromData
    """Number of actions A."""
    embedding: int = 100
    """Width E of the word embeddings."""
    width: int = 100
    """Width C of the recurrent states; the encoder has as many in each direction."""
    aligner: Literal["multi-level", "high-level", "none"] = "multi-level"
    """Attend to [word; hidden state], to the hidden states only, or use the encoder's last state at every step."""
    score_activation: Literal["tanh", "relu", "sigmoid"] = "tanh"
    """The function g in u g(W1 k + W2 q + b)."""
    dropout: float = 0.1
    """Share of embeddings, contexts and states that is dropped in training."""


@dataclass
class WalkerState:
    """The state of the decoder, one row for each walk."""

    hidden: RecurrentState
    instruction: Memory | None
    """The words that the aligner attends to; None without an aligner."""
    lengths: Int[Tensor, "R"]
    context: Float[Tensor, "R V"]
    """The last context; without an aligner, that of all steps."""

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        self.hidden = tuple(part[:, rows] for part in self.hidden)
        if self.instruction is not None:
            self.instruction.reorder(rows)
        self.lengths, self.context = self.lengths[rows], self.context[rows]


class Walker(nn.Module):
    """Chooses an action at each step, from the instruction and what is observed."""

    def __init__(self, config: WalkerConfig) -> None:
        super().__init__()
        check_literals(config)
        self.config, self.attends = config, config.aligner != "none"
        width, encoded = config.width, 2 * config.width
        source = encoded + (config.embedding if config.aligner == "multi-level" else 0)
        self.embedding = nn.Embedding(config.vocabulary, config.embedding)
        self.dropout = Dropout(config.dropout)
        self.encoder = Recurrent("lstm", config.embedding, encoded, bidirectional=True)
        self.bridge = nn.Linear(encoded, width)
        self.score = (
            None
            if config.aligner == "none"
            else Additive(width, source, width, getattr(torch, config.score_activation))
        )
        self.observation = nn.Linear(config.features, width, bias=False)
        self.decoder = Recurrent("lstm", width + source, width)
        self.combine_state = nn.Linear(width, width)
        self.combine_context = nn.Linear(source, width, bias=False)
        self.output = nn.Linear(width, config.actions)

    def forward(
        self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, "B"], features: Float[Tensor, "B T F"]
    ) -> Output:
        """Logits (B, T, A) of the action at each step, given what was observed up to it."""
        state = self.start(tokens, lengths)
        return Output(torch.stack([self.step({"features": seen}, state) for seen in features.unbind(1)], 1))

    def start(self, tokens: Int[Tensor, "B S"], lengths: Int[Tensor, "B"]) -> WalkerState:
        """Read the instructions."""
        words = self.dropout(self.embedding(tokens))
        encoded, last = self.encoder(words, lengths=lengths)
        hidden = tuple(torch.tanh(self.bridge(part)) for part in last)
        if self.score is None:
            return WalkerState(hidden, None, lengths, last[0][-1])
        source = torch.cat([words, encoded], -1) if self.config.aligner == "multi-level" else encoded
        return WalkerState(hidden, Memory(source, source, self.score), lengths, source[:, 0])

    def step(self, observation: dict[str, Tensor], state: WalkerState) -> Float[Tensor, "R A"]:
        """Observe the `features` (R, F) of each row's world; the logits of its next action. Changes the state."""
        seen = self.observation(observation["features"])
        if state.instruction is not None:
            query = state.hidden[0][-1][:, None]
            state.context = attend(query, state.instruction, mask=padding(state.lengths))[:, 0]
        context = self.dropout(state.context)
        outputs, state.hidden = self.decoder(torch.cat([seen, context], -1)[:, None], state.hidden)
        outputs = self.dropout(outputs[:, 0])
        return self.output(seen + self.combine_state(outputs) + self.combine_context(context))


MODEL, CONFIG = Walker, WalkerConfig

PRESETS: dict[str, dict[str, Any]] = {
    "walker": {},
    "walker-tiny": {"embedding": 48, "width": 48},
}
