"""A call whose weights are given, such as those of a monotonic selection, which queries and keys do not determine."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.attention.biases import as_bias
from foveate.attention.call import Call
from foveate.attention.scores import Score
from foveate.attention.selection import Soft

MIN_REST = 1e-12
"""Smallest weight that a row leaves to the sink, so that its logarithm is finite."""


@dataclass(frozen=True)
class _ZeroScore(Score):
    """A score of 0 for every query and key."""

    def block(self, queries: Float[Tensor, "... T P"], keys: Float[Tensor, "... S P"]) -> Float[Tensor, "... T S"]:
        leading = torch.broadcast_shapes(queries.shape[:-2], keys.shape[:-2])
        return queries.new_zeros(*leading, queries.shape[-2], keys.shape[-2])


def with_fixed_weights(call: Call, weights: Float[Tensor, "... T S"]) -> Call:
    """A call with these weights, whose rows sum to at most 1. A sink takes the rest of each row."""
    weights = weights.detach()
    rest = (1 - weights.sum(-1, keepdim=True)).clamp(min=MIN_REST)
    sink = weights.new_zeros(())
    return replace(call, score=_ZeroScore(), mask=None, bias=as_bias(weights.log() - rest.log()), select=Soft(sink))
