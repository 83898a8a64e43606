"""The states of recurrent decoders, and what those have in common that attend to a source."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveate.attention import Attended, Hard, Memory, Score, Selection, Soft, attend, attend_full, padding
from foveate.contracts import Choices
from foveate.nn.local_windows import LocalWindow
from foveate.nn.maxout import Maxout
from foveate.nn.recurrent import Recurrent, RecurrentState


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


class AttentiveDecoder(nn.Module):
    """Base of decoders with attention: score, selection, window, and the layer that combines state and context."""

    attends = True

    affects_later_steps: bool
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
        return Choices(attended.log_prob, attended.entropy, baseline, self.affects_later_steps, self.samples)

    def join(self, outputs: Float[Tensor, "R T C"], context: Float[Tensor, "R T V"]) -> Float[Tensor, "R T C"]:
        return torch.tanh(self.combine(torch.cat([outputs, context], -1)))


def concatenate_choices(steps: Sequence[Choices | None]) -> Choices | None:
    """Concatenate the choices of steps."""
    made = [step for step in steps if step is not None]
    if not made:
        return None
    log_prob, entropy, baseline = (
        torch.cat([getattr(step, name) for step in made], 1) for name in ("log_prob", "entropy", "baseline")
    )
    return Choices(log_prob, entropy, baseline, made[0].affects_later_steps)
