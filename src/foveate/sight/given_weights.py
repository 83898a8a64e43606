"""Weights that a model made, which queries and keys do not determine: of a monotonic selection, or by its own code."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.attention import Attended, Dot
from foveate.attention.attend import SOFT
from foveate.attention.biases import as_bias
from foveate.attention.call import Call
from foveate.attention.selection import Selection
from foveate.errors import UserError


@dataclass(frozen=True, eq=False)
class GivenWeights(Selection):
    """The mean of the values by weights that are given, whatever the scores."""

    weights: Float[Tensor, "... T S"]

    @property
    def keeps_weights(self) -> bool:
        return True

    def select(
        self,
        scores: Float[Tensor, "... T S"],
        values: Float[Tensor, "... S V"],
        dropout: float = 0.0,
        state: Any = None,
        generator: torch.Generator | None = None,
    ) -> Attended:
        return Attended(self.weights.to(values.dtype) @ values)

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.weights,)


def with_given_weights(call: Call, weights: Float[Tensor, "... T S"]) -> Call:
    """A call with these weights in place of those that it implies."""
    # The version counter of an inference tensor cannot tell whether it is written to later.
    weights = weights.clone() if weights.is_inference() else weights.detach()
    return replace(call, score=Dot(), mask=None, bias=None, select=GivenWeights(weights))


def logarithms(weights: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The logarithms of weights, through which gradients flow to those that are not 0."""
    hidden = weights == 0
    return weights.masked_fill(hidden, 1.0).log().masked_fill(hidden, -torch.inf)


@dataclass
class MadeProduct:
    """A product of weights that a model made itself with what it reads, in the dimensions of a site."""

    weights: Float[Tensor, "B H T S"]
    values: Float[Tensor, "#B #H R S V"]
    """R is 1, or T where each query has values of its own."""
    output: Float[Tensor, "B H T V"]
    before_dropout: Float[Tensor, "B H T S"] | None = None
    """The weights before dropout, if it dropped any."""
    points: Call | None = None
    """The call that it is, if the values were read at points of feature maps."""

    def with_heads(self, heads: int | None) -> "MadeProduct":
        """The heads apart from the examples, where one dimension has both."""
        count, own = self.weights.shape[:2]
        if not heads or own > 1 or heads == 1 or count % heads:
            return self
        parts = (self.weights, self.values, self.output)
        return MadeProduct(*(part.squeeze(1).unflatten(0, (-1, heads)) for part in parts))

    @property
    def call(self) -> Call:
        """A call with these values, by which a site tells whether the next call continues its map."""
        values = self.values[:, :, 0]
        queries = self.weights.new_empty(*self.weights.shape[:-1], 0)
        return Call(
            queries, values, values, Dot(), None, None, SOFT, dropout=float(self.before_dropout is not None), full=False
        )

    def as_scores(self, name: str) -> Call:
        """A call that can be changed, whose scores are the logarithms of the weights. Raises UserError if there is
        none."""
        if self.points is not None:
            return self.points
        why = ""
        if self.before_dropout is not None:
            why = "it drops some of them: call model.eval()"
        elif self.values.shape[2] > 1:
            why = "each of its queries has values of its own"
        elif not torch.allclose(self.weights.detach().sum(-1), self.weights.new_ones(()), atol=1e-2):
            why = "they do not sum to 1"
        if why:
            raise UserError(f"{name or 'the model'} makes its weights itself, and they cannot be changed: {why}")
        values = self.values[:, :, 0]
        queries, keys = self.weights.new_zeros(*self.weights.shape[:-1], 1), values.new_zeros(*values.shape[:-1], 1)
        bias = as_bias(logarithms(self.weights).to(values.dtype))
        return Call(queries.to(values.dtype), keys, values, Dot(), None, bias, SOFT, dropout=0.0, full=False)

    def expected(self, rows: Sequence[int]) -> Float[Tensor, "B H R V"]:
        """The output of some queries, computed from weights and values."""
        weights, values = self.weights[:, :, list(rows)], self.values
        dtype = torch.promote_types(weights.dtype, torch.float32)
        if values.shape[2] > 1:
            return (weights[..., None, :].to(dtype) @ values[:, :, list(rows)].to(dtype)).squeeze(-2)
        return weights.to(dtype) @ values[:, :, 0].to(dtype)
