"""How a recurrent decoder uses the source: as one fixed vector, or by attention before or after each step.

All three have the same face: `start` gives a state, `forward` advances it by one step or by many. Where a step needs
what the step before attended to, many steps are a loop; else they are one call of a fused recurrent layer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Attended, Hard, Memory, Score, Selection, Soft, attend, attend_full, padding
from foveate.contracts import Choices
from foveate.nn.local_windows import LocalWindow
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
    steps: int = 0
    """How many are behind."""
    place: Float[Tensor, "R S"] | None = None
    """Where the last step stopped, if the selection remembers that."""

    def reorder(self, rows: Int[Tensor, "Q"]) -> None:
        super().reorder(rows)
        self.source.reorder(rows)
        self.source_lengths = self.source_lengths[rows]
        self.place = None if self.place is None else self.place[rows]


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
    """What both attentive decoders share: score, selection and window, and the layer that joins state and context."""

    lasting: bool
    """Whether what a step attends to also reaches the steps after it."""

    def __init__(
        self,
        recurrent: Recurrent,
        width: int,
        source_width: int,
        score: Score,
        select: Selection,
        window: LocalWindow | None,
    ) -> None:
        super().__init__()
        self.recurrent = recurrent
        self.score, self.select, self.window = score, select, window
        self.combine = nn.Linear(width + source_width, width)
        self.expected_reward = nn.Linear(width, 1) if isinstance(select, Hard) else None

    def start(
        self, hidden: RecurrentState, encoded: Float[Tensor, "B S V"], lengths: Int[Tensor, "B"]
    ) -> AttentiveDecoderState:
        memory = Memory(encoded, encoded, self.score)
        return AttentiveDecoderState(hidden, torch.zeros_like(hidden[0][-1]), memory, lengths)

    def attend(self, queries: Float[Tensor, "R T C"], state: AttentiveDecoderState) -> Attended:
        """What the next steps take from the source; the state notes where they stopped."""
        mask, bias = padding(state.source_lengths), None
        if self.window is not None:
            near, bias = self.window(queries, state.steps, state.source_lengths)
            mask = mask & near
        state.steps += queries.shape[1]
        if isinstance(self.select, Soft):  # which has nothing more to tell
            return Attended(attend(queries, state.source, mask=mask, bias=bias, select=self.select))
        # By name: a choice has no other kernel, however large a batch of long sentences is.
        attended = attend_full(
            queries, state.source, mask=mask, bias=bias, select=self.select, kernel="eager", state=state.place
        )
        state.place = attended.state
        return attended

    def choices(self, queries: Float[Tensor, "R T C"], attended: Attended) -> Choices | None:
        """Of the places that the queries took, if they took any; the reward is expected from the queries alone."""
        if self.expected_reward is None:
            return None
        assert attended.log_prob is not None
        assert attended.entropy is not None
        baseline = self.expected_reward(queries.detach()).squeeze(-1)
        return Choices(attended.log_prob, attended.entropy, baseline, self.lasting)

    def join(self, outputs: Float[Tensor, "R T C"], context: Float[Tensor, "R T V"]) -> Float[Tensor, "R T C"]:
        return torch.tanh(self.combine(torch.cat([outputs, context], -1)))


class BahdanauDecoder(_AttentiveDecoder):
    """The state before the step asks; the context joins the step's input (Bahdanau et al. 2015)."""

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

    def forward(self, x: Float[Tensor, "R T E"], state: AttentiveDecoderState) -> tuple[Tensor, Choices | None]:
        steps = [self.step(one, state) for one in x.split(1, 1)]
        outputs, contexts, choices = zip(*steps, strict=True)
        return self.join(torch.cat(outputs, 1), torch.cat(contexts, 1)), _in_a_row(choices)

    def step(self, x: Float[Tensor, "R 1 E"], state: AttentiveDecoderState) -> tuple[Tensor, Tensor, Choices | None]:
        """The output of one step, what it attended to, and how it chose that."""
        query = state.hidden[0][-1][:, None]
        attended = self.attend(query, state)
        outputs, state.hidden = self.recurrent(torch.cat([x, attended.output], -1), state.hidden)
        return outputs, attended.output, self.choices(query, attended)


class LuongDecoder(_AttentiveDecoder):
    """The state after the step asks; with input feeding, its answer joins the next input (Luong et al. 2015)."""

    def __init__(
        self,
        recurrent: RecurrentOfInput,
        width: int,
        source_width: int,
        score: Score,
        select: Selection,
        window: LocalWindow | None = None,
        input_feeding: bool = False,
    ) -> None:
        super().__init__(recurrent(width if input_feeding else 0), width, source_width, score, select, window)
        self.lasting = input_feeding

    def forward(self, x: Float[Tensor, "R T E"], state: AttentiveDecoderState) -> tuple[Tensor, Choices | None]:
        if not self.lasting:
            return self.steps(x, state)
        joined, choices = [], []
        for one in x.split(1, 1):
            answer, chosen = self.steps(torch.cat([one, state.joined[:, None]], -1), state)
            state.joined = answer[:, 0]
            joined.append(answer)
            choices.append(chosen)
        return torch.cat(joined, 1), _in_a_row(choices)

    def steps(self, x: Float[Tensor, "R T F"], state: AttentiveDecoderState) -> tuple[Tensor, Choices | None]:
        """Steps that need nothing of one another but the recurrent state."""
        outputs, state.hidden = self.recurrent(x, state.hidden)
        attended = self.attend(outputs, state)
        return self.join(outputs, attended.output), self.choices(outputs, attended)


def _in_a_row(steps: Sequence[Choices | None]) -> Choices | None:
    """The choices of one step after the other."""
    made = [step for step in steps if step is not None]
    if not made:
        return None
    log_prob, entropy, baseline = (
        torch.cat([getattr(step, name) for step in made], 1) for name in ("log_prob", "entropy", "baseline")
    )
    return Choices(log_prob, entropy, baseline, made[0].lasting)
