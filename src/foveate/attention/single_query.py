"""Attention of one query of each row to the keys so far, as a step of writing needs it: no choice of a kernel, no
descriptions of masks, no hooks."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from foveate.attention.biases import Bias
from foveate.attention.masks import Mask
from foveate.attention.selection import weights


class StepMasks:
    """What a mask and a bias say about the keys of one query, which the layers of a step share."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], tuple[Mask | None, Bias | None, Tensor | None, Tensor | None]] = {}

    def of(
        self, mask: Mask | None, bias: Bias | None, queries: Tensor, keys: int
    ) -> tuple[Bool[Tensor, "... 1 S"] | None, Float[Tensor, "... 1 S"] | None]:
        """The keys that are hidden, and the numbers that are added to the scores; None for nothing."""
        if mask is None and bias is None:
            return None, None
        name = id(mask), id(bias), keys
        found = self._known.get(name)
        if found is None:
            hidden = added = None
            if mask is not None:
                hidden = ~mask.block(range(1), range(keys), 2, queries.device)
            if bias is not None:
                added = bias.block(queries, range(1), range(keys))
            # Mask and bias are kept, so that no other one gets their number; those of earlier steps go.
            found = mask, bias, hidden, added
            if len(self._known) > 8:
                self._known.clear()
            self._known[name] = found
        return found[2], found[3]


def attend_step(
    queries: Float[Tensor, "R G N D"],
    keys: Float[Tensor, "R G S D"],
    values: Float[Tensor, "R G S V"],
    scale: float,
    cap: float | None = None,
    hidden: Bool[Tensor, "... 1 S"] | None = None,
    added: Float[Tensor, "... 1 S"] | None = None,
) -> Float[Tensor, "R G N V"]:
    """Attention of N queries that share keys, as the heads of a group and the beams of a source do.

    Scores are dot products times `scale`, limited to the `cap`; the other arguments are those of `StepMasks.of`.
    """
    if cap is None and hidden is None and added is None and len(queries) == 1:  # slower for several rows
        return F.scaled_dot_product_attention(queries, keys, values, scale=scale)
    scores = (queries * scale) @ keys.mT
    if cap is not None:
        scores = scores.div_(cap).tanh_().mul_(cap)
    if added is not None:
        scores = scores + added
    if hidden is None:
        return scores.softmax(-1) @ values
    return weights(scores.masked_fill(hidden, -torch.inf)) @ values
