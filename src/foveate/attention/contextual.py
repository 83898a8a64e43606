"""Positions that a query counts by what stands between it and a key: words, sentences, or what it looks for."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention.selection import Soft, Weighing
from foveate.attention.shapes import precise


class ContextualPosition(nn.Module, Weighing):
    """Adds `q_i·e(p_ij)` to the scores before another rule, by default the softmax (CoPE, Golovneva et al. 2024,
    https://arxiv.org/abs/2405.18719).

    The position p_ij of key j is the sum of the sigmoids of the scores of all keys from j to the last that query i may
    see: how many of them the query counts. Vectors e are learned for the positions 0 to `count` - 1, the last of which
    is that of all beyond; products between two of them are interpolated. Made for causal attention.
    """

    reads_queries = True

    def __init__(self, width: int, count: int, rule: Weighing | None = None) -> None:
        """`width` is that of the (prepared) queries. All heads share the vectors."""
        super().__init__()
        self.rule = Soft() if rule is None else rule
        self.joins_heads = self.rule.joins_heads
        self.vectors = nn.Parameter(torch.zeros(count, width))

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.vectors, *self.rule.tensors())

    def for_queries(self, queries: Float[Tensor, "... T P"]) -> Weighing:
        return _Counted(precise(queries @ self.vectors.to(queries.dtype).mT), self.rule.for_queries(queries))

    def weigh(self, scores: Float[Tensor, "... T S"]) -> Float[Tensor, "... T S"]:
        raise TypeError("contextual positions depend on the queries: weigh by `for_queries(queries).weigh(scores)`")


@dataclass(frozen=True, eq=False)
class _Counted(Weighing):
    """Contextual positions of some queries."""

    products: Float[Tensor, "... T N"]
    """Of each query with the vectors of all positions."""
    rule: Weighing

    def weigh(self, scores: Float[Tensor, "... T S"]) -> Float[Tensor, "... T S"]:
        counted = precise(scores).sigmoid()
        places = counted.flip(-1).cumsum(-1).flip(-1).clamp(max=self.products.shape[-1] - 1)
        below = places.detach().floor()
        share, low = places - below, below.long()
        products = self.products.expand(*scores.shape[:-1], -1)
        high = (low + 1).clamp(max=products.shape[-1] - 1)
        added = torch.lerp(products.gather(-1, low), products.gather(-1, high), share)
        return self.rule.weigh(scores + added.to(scores.dtype))
