"""The log-probability of known outputs: all positions at once, or step by step."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from foveate.contracts import IGNORE, Batch, Generator, Output
from foveate.errors import UserError
from foveate.special_tokens import SpecialTokens


@torch.no_grad()
def score(model: Callable[..., Output], batch: Batch) -> Float[Tensor, "B"]:
    """The log-probability of each example's labels, without IGNORE, from one teacher-forced call of the model.

    Raises UserError if the shapes of logits and labels differ.
    """
    logits = model(**batch.inputs).logits
    if logits.shape[:2] != batch.labels.shape:
        raise UserError(
            f"the model returned logits of shape {tuple(logits.shape)} for labels of shape {tuple(batch.labels.shape)}"
        )
    losses = cross_entropy(logits.flatten(0, 1).float(), batch.labels.flatten(), ignore_index=IGNORE, reduction="none")
    return -losses.view(batch.labels.shape).sum(1)


@torch.no_grad()
def step_scores(model: Generator, batch: Batch, special: SpecialTokens) -> Float[Tensor, "B"]:
    """`score`, computed token by token as in decoding.

    `prefill` gets the start token and the inputs whose names do not begin with "target".
    """
    source = {name: value for name, value in batch.inputs.items() if not name.startswith("target")}
    logits, state = model.prefill(torch.full_like(batch.labels[:, :1], special.start), **source)
    fed = batch.labels.masked_fill(batch.labels == IGNORE, special.pad)
    total = torch.zeros(len(logits), device=logits.device)
    for place, expected in enumerate(batch.labels.unbind(1)):
        if place:
            logits = model.step(fed[:, place - 1], state)
        total = total - cross_entropy(logits.float(), expected, ignore_index=IGNORE, reduction="none")
    return total
