"""Recurrent decoders: with one fixed vector of the source, or with attention before or after each step.

All have the same interface: `start` returns a state, `forward` advances it by one or more steps. If a step depends on
the attention of the step before, `forward` is a loop; otherwise it is one call of a fused recurrent layer.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Score, Selection
from foveate.contracts import Choices
from foveate.nn.attentive_decoder import (
    AttentiveDecoder,
    AttentiveDecoderState,
    RecurrentDecoderState,
    concatenate_choices,
)
from foveate.nn.local_windows import LocalWindow
from foveate.nn.maxout import Maxout
from foveate.nn.recurrent import Recurrent, RecurrentState

RecurrentOfInput = Callable[[int], Recurrent]
"""Makes the recurrent layer of a decoder, given the width of the input in addition to the embedding."""


class FixedVectorDecoder(nn.Module):
    """A decoder with one vector of the source: in the first state (Sutskever et al. 2014), or also at every step."""

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


class BahdanauDecoder(AttentiveDecoder):
    """The query is the state before the step; the context is part of the step's input (Bahdanau et al. 2015).

    With a `readout`, the paper's maxout layer reads the new state, the context and the word's embedding.
    """

    affects_later_steps = True

    def __init__(
        self,
        recurrent: RecurrentOfInput,
        width: int,
        source_width: int,
        score: Score,
        select: Selection,
        window: LocalWindow | None = None,
        readout: Maxout | None = None,
    ) -> None:
        super().__init__(recurrent(source_width), width, source_width, score, select, window, readout)

    def forward(self, x: Float[Tensor, "R T E"], state: AttentiveDecoderState) -> tuple[Tensor, Choices | None]:
        steps = [self.step(one, state) for one in x.split(1, 1)]
        outputs, contexts, choices = zip(*steps, strict=True)
        output, context = torch.cat(outputs, 1), torch.cat(contexts, 1)
        joined = self.join(output, context) if self.readout is None else self.readout([output, context, x])
        return joined, concatenate_choices(choices)

    def step(self, x: Float[Tensor, "R 1 E"], state: AttentiveDecoderState) -> tuple[Tensor, Tensor, Choices | None]:
        """The output of one step, its context, and its choices."""
        query = state.hidden[0][-1][:, None]
        attended = self.attend(query, state)
        outputs, state.hidden = self.recurrent(torch.cat([x, attended.output], -1), state.hidden)
        return outputs, attended.output, self.choices(query, attended)


class LuongDecoder(AttentiveDecoder):
    """The query is the state after the step; with input feeding, the result is part of the next input (Luong et al.
    2015).

    A hard selection takes several `samples` of each step in training: outputs are then (R, samples * T, C). No step may
    depend on what another one chose.
    """

    def __init__(
        self,
        recurrent: RecurrentOfInput,
        width: int,
        source_width: int,
        score: Score,
        select: Selection,
        window: LocalWindow | None = None,
        input_feeding: bool = False,
        samples: int = 1,
    ) -> None:
        super().__init__(recurrent(width if input_feeding else 0), width, source_width, score, select, window)
        self.affects_later_steps = input_feeding
        self.samples = samples

    def forward(self, x: Float[Tensor, "R T E"], state: AttentiveDecoderState) -> tuple[Tensor, Choices | None]:
        if not self.affects_later_steps:
            return self.steps(x, state)
        joined, choices = [], []
        for one in x.split(1, 1):
            output, chosen = self.steps(torch.cat([one, state.joined[:, None]], -1), state)
            state.joined = output[:, 0]
            joined.append(output)
            choices.append(chosen)
        return torch.cat(joined, 1), concatenate_choices(choices)

    def steps(self, x: Float[Tensor, "R T F"], state: AttentiveDecoderState) -> tuple[Tensor, Choices | None]:
        """Several steps that depend on each other only by the recurrent state."""
        outputs, state.hidden = self.recurrent(x, state.hidden)
        if self.training and self.samples > 1:
            outputs = outputs.repeat(1, self.samples, 1)
        attended = self.attend(outputs, state)
        return self.join(outputs, attended.output), self.choices(outputs, attended)


class ContextDecoder(AttentiveDecoder):
    """The query is the state after the step; its context alone is part of the next input (Chan et al. 2016, Listen,
    Attend and Spell)."""

    affects_later_steps = True

    def __init__(
        self,
        recurrent: RecurrentOfInput,
        width: int,
        source_width: int,
        score: Score,
        select: Selection,
        window: LocalWindow | None = None,
    ) -> None:
        super().__init__(recurrent(source_width), width, source_width, score, select, window)

    def start(
        self, hidden: RecurrentState, encoded: Float[Tensor, "B S V"], lengths: Int[Tensor, "B"]
    ) -> AttentiveDecoderState:
        state = super().start(hidden, encoded, lengths)
        state.joined = encoded.new_zeros(len(encoded), encoded.shape[-1])
        return state

    def forward(self, x: Float[Tensor, "R T E"], state: AttentiveDecoderState) -> tuple[Tensor, Choices | None]:
        outputs, contexts, choices = [], [], []
        for one in x.split(1, 1):
            output, state.hidden = self.recurrent(torch.cat([one, state.joined[:, None]], -1), state.hidden)
            attended = self.attend(output, state)
            state.joined = attended.output[:, 0]
            outputs.append(output)
            contexts.append(attended.output)
            choices.append(self.choices(output, attended))
        return self.join(torch.cat(outputs, 1), torch.cat(contexts, 1)), concatenate_choices(choices)
