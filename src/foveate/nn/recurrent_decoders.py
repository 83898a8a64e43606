"""Recurrent decoders: with one fixed vector of the source, or with attention before or after each step.

All have the same interface: `start` returns a state, `forward` advances it by one or more steps. If a step depends on
the attention of the step before, `forward` is a loop; otherwise it is one call of a fused recurrent layer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Attended, Hard, Memory, Score, Selection, Soft, attend, attend_full, padding
from foveate.contracts import Choices
from foveate.nn.local_windows import LocalWindow
from foveate.nn.maxout import Maxout
from foveate.nn.recurrent import Recurrent, RecurrentState

RecurrentOfInput = Callable[[int], Recurrent]
"""Makes the recurrent layer of a decoder, given the width of the input in addition to the embedding."""


@dataclass
class RecurrentDecoderState:
    """The state of a decoder, one row (the second dimension of `hidden`) for each sentence or beam."""

    hidden: RecurrentState
    joined: Float[Tensor, "R C"]
    """The vector concatenated to the next input: the fixed vector, or the attention output of the last step."""

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        self.hidden = tuple(part[:, rows] for part in self.hidden)
        self.joined = self.joined[rows]


@dataclass
class AttentiveDecoderState(RecurrentDecoderState):
    """The state of a decoder with attention."""

    source: Memory
    source_lengths: Int[Tensor, "R"]
    steps: int = 0
    """Number of steps so far."""
    place: Float[Tensor, "R S"] | None = None
    """The state of the selection, if it has one."""
    centre: Float[Tensor, "R"] | None = None
    """The last centre of the window, if there is one."""

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        super().reorder(rows)
        self.source.reorder(rows)
        self.source_lengths = self.source_lengths[rows]
        self.place = None if self.place is None else self.place[rows]
        self.centre = None if self.centre is None else self.centre[rows]


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


class AttentiveDecoder(nn.Module):
    """Base of decoders with attention: score, selection, window, and the layer that combines state and context."""

    attends = True

    lasting: bool
    """Whether the attention of a step affects later steps."""

    def __init__(
        self,
        recurrent: Recurrent,
        width: int,
        source_width: int,
        score: Score,
        select: Selection,
        window: LocalWindow | None,
        readout: Maxout | None = None,
    ) -> None:
        super().__init__()
        self.recurrent = recurrent
        self.score, self.select, self.window = score, select, window
        if readout is None:
            self.combine = nn.Linear(width + source_width, width)
        self.readout = readout
        self.expected_reward = nn.Linear(width, 1) if isinstance(select, Hard) else None
        self.samples = 1

    def start(
        self, hidden: RecurrentState, encoded: Float[Tensor, "B S V"], lengths: Int[Tensor, "B"]
    ) -> AttentiveDecoderState:
        memory = Memory(encoded, encoded, self.score)
        return AttentiveDecoderState(hidden, torch.zeros_like(hidden[0][-1]), memory, lengths)

    def attend(self, queries: Float[Tensor, "R T C"], state: AttentiveDecoderState) -> Attended:
        """Attention of the next steps to the source; updates the state."""
        mask, bias = padding(state.source_lengths), None
        if self.window is not None:
            near, bias, state.centre = self.window(queries, state.steps, state.source_lengths, state.centre)
            mask = mask & near
        state.steps += queries.shape[1]
        if isinstance(self.select, Soft):  # needs no more than the output
            return Attended(attend(queries, state.source, mask=mask, bias=bias, select=self.select))
        # By name: only the eager kernel serves a hard selection, also for large batches.
        attended = attend_full(
            queries, state.source, mask=mask, bias=bias, select=self.select, kernel="eager", state=state.place
        )
        state.place = attended.state
        return attended

    def choices(self, queries: Float[Tensor, "R T C"], attended: Attended) -> Choices | None:
        """Log-probability, entropy and baseline of hard choices; None for other selections."""
        if self.expected_reward is None:
            return None
        assert attended.log_prob is not None
        assert attended.entropy is not None
        baseline = self.expected_reward(queries.detach()).squeeze(-1)
        return Choices(attended.log_prob, attended.entropy, baseline, self.lasting, self.samples)

    def join(self, outputs: Float[Tensor, "R T C"], context: Float[Tensor, "R T V"]) -> Float[Tensor, "R T C"]:
        return torch.tanh(self.combine(torch.cat([outputs, context], -1)))


class BahdanauDecoder(AttentiveDecoder):
    """The query is the state before the step; the context is part of the step's input (Bahdanau et al. 2015).

    With a `readout`, the paper's maxout layer reads the new state, the context and the word's embedding.
    """

    lasting = True

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
        self.lasting = input_feeding
        self.samples = samples

    def forward(self, x: Float[Tensor, "R T E"], state: AttentiveDecoderState) -> tuple[Tensor, Choices | None]:
        if not self.lasting:
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

    lasting = True

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


def concatenate_choices(steps: Sequence[Choices | None]) -> Choices | None:
    """Concatenate the choices of steps."""
    made = [step for step in steps if step is not None]
    if not made:
        return None
    log_prob, entropy, baseline = (
        torch.cat([getattr(step, name) for step in made], 1) for name in ("log_prob", "entropy", "baseline")
    )
    return Choices(log_prob, entropy, baseline, made[0].lasting)
