"""Weights that queries and keys alone do not tell, such as those of a monotonic selection, in the form of a call."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.attention.biases import as_bias
from foveate.attention.call import Call
from foveate.attention.scores import Score
from foveate.attention.selection import Soft

LEAST = 1e-12
"""What a row leaves at least for no key, so that its logarithm is a number."""


@dataclass(frozen=True)
class _Nothing(Score):
    """No key answers any query."""

    def block(self, queries: Float[Tensor, "... T P"], keys: Float[Tensor, "... S P"]) -> Float[Tensor, "... T S"]:
        leading = torch.broadcast_shapes(queries.shape[:-2], keys.shape[:-2])
        return queries.new_zeros(*leading, queries.shape[-2], keys.shape[-2])


def known(call: Call, weights: Float[Tensor, "... T S"]) -> Call:
    """A call that has these weights, whose rows sum to at most 1: what they leave goes to a sink."""
    weights = weights.detach()
    left = (1 - weights.sum(-1, keepdim=True)).clamp(min=LEAST)
    sink = weights.new_zeros(())
    return replace(call, score=_Nothing(), mask=None, bias=as_bias(weights.log() - left.log()), select=Soft(sink))
