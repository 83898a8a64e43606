"""The first step of decoding, for both kinds of models that write."""

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.contracts import Generator, State, StepDecoder
from foveate.special_tokens import SpecialTokens


def first_step(
    model: Generator | StepDecoder, inputs: dict[str, Tensor], special: SpecialTokens
) -> tuple[Float[Tensor, "R N"], State]:
    """The logits of each row's first token and the state: by `prefill`, or by `start` and a step."""
    if hasattr(model, "prefill"):
        return model.prefill(**inputs)
    state = model.start(**inputs)
    rows = next(iter(inputs.values()))
    return model.step(torch.full((len(rows),), special.start, device=rows.device), state), state
