"""The first step of decoding: outputs begin with their prompt, or with the start token."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.attention import RowGroups
from foveate.contracts import Generator, State
from foveate.decoding.beam_sources import BeamSources
from foveate.special_tokens import SpecialTokens


@runtime_checkable
class SourceState(Protocol):
    """The state of a model that attends to a source, whose rows may share it.

    Its `reorder` takes rows on the CPU, so that nothing is read from an accelerator to group them.
    """

    def share(self, groups: RowGroups) -> None:
        """Rows of one group attend to one row of the source."""


def first_step(
    model: Generator, inputs: dict[str, Tensor], special: SpecialTokens
) -> tuple[Float[Tensor, "R N"], State]:
    """The logits of each row's next token and the state after the prompt, the input `tokens`, or the start token.

    Rows that continue one row share its source.
    """
    if "tokens" not in inputs:
        rows = next(iter(inputs.values()))
        inputs = {"tokens": torch.full((len(rows), 1), special.start, device=rows.device), **inputs}
    logits, state = model.prefill(**inputs)
    if isinstance(state, SourceState):
        state.share(BeamSources(torch.arange(len(logits)), logits.device))
    return logits, state
