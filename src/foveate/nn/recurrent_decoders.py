"""How a recurrent decoder uses the source: as one fixed vector, or by attention before or after each step.

All three have the same face: `start` gives a state, `forward` advances it by one step or by many. Where a step needs
what the step before attended to, many steps are a loop; else they are one call of a fused recurrent layer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Attended, Memory, Score, Selection, attend_full, padding
from foveate.nn.recurrent import Recurrent, RecurrentState

RecurrentOfInput = Callable[[int], Recurrent]
"""Makes the decoder's recurrent layer, given how much wider than an embedding its input is."""


@dataclass
class RecurrentDecoderState:
    """What a decoder remembers: one row (the second dimension of `hidden`) for each sentence or beam."""

    hidden: RecurrentState
    joined: Float[Tensor, "R C"]
    """What the decoder joins to its next input: the fixed vector, or what the last step attended to."""

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        self.hidden = tuple(part[:, rows] for part in self.hidden)
        self.joined = self.joined[rows]


@dataclass
class AttentiveDecoderState(RecurrentDecoderState):
    """With the source, which an attentive decoder looks into at every step."""

    source: Memory
    source_lengths: Int[Tensor, "R"]

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        super().reorder(rows)
        self.source.reorder(rows)
        self.source_lengths = self.source_lengths[rows]


class FixedVectorDecoder(nn.Module):
    """The source is one vector: in the first state only (Sutskever et al. 2014), or also, projected, at every step."""

    def __init__(self, recurrent: RecurrentOfInput, width: int, every_step: bool) -> None:
        super().__init__()
        self.fixed = nn.Linear(width, width) if every_step else None
        self.recurrent = recurrent(width if every_step else 0)

    def start(self, hidden: RecurrentState, encoded: Tensor, lengths: Tensor) -> RecurrentDecoderState:
        last = hidden[0][-1]
        return RecurrentDecoderState(hidden, last if self.fixed is None else self.fixed(last))

    def forward(self, x: Float[Tensor, "R T E"], state: RecurrentDecoderState) -> tuple[Tensor, None]:
        if self.fixed is not None:
            x = torch.cat([x, state.joined[:, None].expand(-1, x.shape[1], -1)], -1)
        outputs, state.hidden = self.recurrent(x, state.hidden)
        return outputs, None


class _AttentiveDecoder(nn.Module):
    """What both attentive decoders share: a score, a selection, and the layer that joins state and context."""

    def __init__(self, recurrent: Recurrent, width: int, source_width: int, score: Score, select: Selection) -> None:
        super().__init__()
        self.recurrent = recurrent
        self.score, self.select = score, select
        self.combine = nn.Linear(width + source_width, width)

    def start(
        self, hidden: RecurrentState, encoded: Float[Tensor, "B S V"], lengths: Int[Tensor, "B"]
    ) -> AttentiveDecoderState:
        memory = Memory(encoded, encoded, self.score)
        return AttentiveDecoderState(hidden, torch.zeros_like(hidden[0][-1]), memory, lengths)

    def attend(self, queries: Float[Tensor, "R T C"], state: AttentiveDecoderState) -> Attended:
        return attend_full(queries, state.source, mask=padding(state.source_lengths), select=self.select)

    def join(self, outputs: Float[Tensor, "R T C"], attended: Attended) -> Float[Tensor, "R T C"]:
        return torch.tanh(self.combine(torch.cat([outputs, attended.output], -1)))

    def step(self, x: Float[Tensor, "R T E"], state: AttentiveDecoderState) -> tuple[Tensor, Tensor | None]:
        """Advance by one step (by many, if a step needs nothing of the one before)."""
        raise TypeError(f"{type(self).__name__} takes no step")

    def loop(self, x: Float[Tensor, "R T E"], state: AttentiveDecoderState) -> tuple[Tensor, Tensor | None]:
        steps = [self.step(one, state) for one in x.split(1, 1)]
        outputs, log_probs = zip(*steps, strict=True)
        return torch.cat(outputs, 1), None if log_probs[0] is None else torch.cat(log_probs, 1)


class BahdanauDecoder(_AttentiveDecoder):
    """The state before the step asks; the context joins the step's input (Bahdanau et al. 2015)."""

    def __init__(
        self, recurrent: RecurrentOfInput, width: int, source_width: int, score: Score, select: Selection
    ) -> None:
        super().__init__(recurrent(source_width), width, source_width, score, select)

    def forward(self, x: Float[Tensor, "R T E"], state: AttentiveDecoderState) -> tuple[Tensor, Tensor | None]:
        return self.loop(x, state)

    def step(self, x: Float[Tensor, "R 1 E"], state: AttentiveDecoderState) -> tuple[Tensor, Tensor | None]:
        attended = self.attend(state.hidden[0][-1][:, None], state)
        outputs, state.hidden = self.recurrent(torch.cat([x, attended.output], -1), state.hidden)
        return self.join(outputs, attended), attended.log_prob


class LuongDecoder(_AttentiveDecoder):
    """The state after the step asks; with input feeding, its answer joins the next input (Luong et al. 2015)."""

    def __init__(
        self,
        recurrent: RecurrentOfInput,
        width: int,
        source_width: int,
        score: Score,
        select: Selection,
        input_feeding: bool,
    ) -> None:
        super().__init__(recurrent(width if input_feeding else 0), width, source_width, score, select)
        self.input_feeding = input_feeding

    def forward(self, x: Float[Tensor, "R T E"], state: AttentiveDecoderState) -> tuple[Tensor, Tensor | None]:
        return self.loop(x, state) if self.input_feeding else self.step(x, state)

    def step(self, x: Float[Tensor, "R T E"], state: AttentiveDecoderState) -> tuple[Tensor, Tensor | None]:
        if self.input_feeding:
            x = torch.cat([x, state.joined[:, None]], -1)
        outputs, state.hidden = self.recurrent(x, state.hidden)
        attended = self.attend(outputs, state)
        joined = self.join(outputs, attended)
        state.joined = joined[:, -1]
        return joined, attended.log_prob
