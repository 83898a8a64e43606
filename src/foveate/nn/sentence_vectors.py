"""Encoding a sentence into one vector, and decoding a sentence from one."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.nn.attentive_decoder import RecurrentDecoderState
from foveate.nn.dropout import Dropout
from foveate.nn.encoder_decoder import EncoderDecoder
from foveate.nn.pooling import LastState
from foveate.nn.recurrent import Recurrent, RecurrentState


class SentenceReader(nn.Module):
    """Encodes a sentence into one vector by a recurrent layer and a `pooling`, by default the last state."""

    def __init__(
        self, embedding: nn.Embedding, recurrent: Recurrent, dropout: float, pooling: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.dropout = Dropout(dropout)
        self.recurrent = recurrent
        self.pooling = pooling or LastState()

    def forward(self, source: Int[Tensor, "B S"], source_lengths: Int[Tensor, "B"]) -> Float[Tensor, "B C"]:
        states, last = self.recurrent(self.dropout(self.embedding(source)), lengths=source_lengths)
        return self.pooling(states, source_lengths, last[0][-1])


class SentenceWriter(EncoderDecoder, nn.Module):
    """Decodes a sentence from a vector c. It gives the first state and is an input of every step: R(s_j, [t_j; c]).

    A step decoder with the input `vectors` (B, C).
    """

    def __init__(self, embedding: nn.Embedding, recurrent: Recurrent, dropout: float) -> None:
        """The input of `recurrent` is an embedding and a vector of its own width."""
        super().__init__()
        self.embedding = embedding
        self.dropout = Dropout(dropout)
        self.first = FirstState(recurrent)
        self.recurrent = recurrent
        self.output = nn.Linear(recurrent.width, embedding.num_embeddings)

    def forward(self, vectors: Float[Tensor, "B C"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T N"]:
        """The logits of the token after each target token."""
        return self._advance(target, self.start(vectors))

    def start(self, vectors: Float[Tensor, "B C"]) -> RecurrentDecoderState:
        return RecurrentDecoderState(self.first(vectors), vectors)

    def step(self, tokens: Int[Tensor, "R"], state: RecurrentDecoderState) -> Float[Tensor, "R N"]:
        return self._advance(tokens[:, None], state).squeeze(1)

    def _advance(self, tokens: Int[Tensor, "R T"], state: RecurrentDecoderState) -> Float[Tensor, "R T N"]:
        vectors = state.joined[:, None].expand(-1, tokens.shape[1], -1)
        inputs = torch.cat([self.dropout(self.embedding(tokens)), vectors], -1)
        outputs, state.hidden = self.recurrent(inputs, state.hidden)
        return self.output(self.dropout(outputs))


class FirstState(nn.Module):
    """The first state of a recurrent layer, projected from one vector."""

    def __init__(self, recurrent: Recurrent) -> None:
        super().__init__()
        self.states = 2 if isinstance(recurrent.layer, nn.LSTM) else 1
        self.layers, self.width = recurrent.layer.num_layers, recurrent.width
        self.linear = nn.Linear(recurrent.width, self.states * self.layers * recurrent.width)

    def forward(self, vectors: Float[Tensor, "B C"]) -> RecurrentState:
        parts = torch.tanh(self.linear(vectors)).view(len(vectors), self.states, self.layers, self.width)
        return tuple(part.transpose(0, 1).contiguous() for part in parts.unbind(1))
