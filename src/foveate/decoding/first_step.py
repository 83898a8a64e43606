"""The first step of decoding, for both kinds of models that write."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.attention import RowGroups
from foveate.contracts import Generator, State, StepDecoder
from foveate.decoding.beam_sources import BeamSources
from foveate.special_tokens import SpecialTokens


@runtime_checkable
class SourceState(Protocol):
    """The state of a model that attends to a source, whose rows may share it."""

    def share(self, groups: RowGroups) -> None:
        """Rows of one group attend to one row of the source."""


def first_step(
    model: Generator | StepDecoder, inputs: dict[str, Tensor], special: SpecialTokens
) -> tuple[Float[Tensor, "R N"], State]:
    """The logits of each row's first token and the state: by `prefill`, or by `start` and a step.

    Rows that continue one row share its source.
    """
    if hasattr(model, "prefill"):
        logits, state = model.prefill(**inputs)
    else:
        state = model.start(**inputs)
        rows = next(iter(inputs.values()))
        logits = model.step(torch.full((len(rows),), special.start, device=rows.device), state)
    if isinstance(state, SourceState):
        state.share(BeamSources(torch.arange(len(logits), device=logits.device)))
    return logits, state
