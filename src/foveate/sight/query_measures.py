"""Measures of each query: entropy, largest weight, distance, and the keys with the largest weights."""

from abc import abstractmethod
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.attention import scratch
from foveate.attention.call import Call
from foveate.sight.blocks import Block, Measure, merge_heads, zeros

GROUP = 8
"""Number of keys in each group of the top-k search."""


class _PerQuery(Measure):
    """One number for each query."""

    def start(self, call: Call) -> None:
        self.leading, self.sinks = len(call.leading), call.select.sinks
        self.values = zeros(call, call.queries.shape[-2])

    def add(self, block: Block) -> None:
        block.query_view(self.values).copy_(self.compute(block))

    @abstractmethod
    def compute(self, block: Block) -> Float[Tensor, "... R"]:
        """The numbers of a block's queries."""

    def result(self) -> Float[Tensor, "B H T"]:
        return merge_heads(self.values, self.leading)


class Entropy(_PerQuery):
    """The entropy of each query's weights in nats, (B, H, T). A sink counts as one more key."""

    def compute(self, block: Block) -> Float[Tensor, "... R"]:
        # log(weight) = log(largest weight) + difference of the scores: one logarithm for each row, not for each weight.
        highest = block.scores.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
        below = torch.sub(block.scores, highest, out=scratch.empty(block.scores.shape, like=block.scores))
        below.clamp_(min=-1e3).mul_(block.weights)  # -inf times 0 would be NaN
        total, largest_weight = block.weights.sum(-1), block.weights.amax(-1)
        entropy = (below.sum(-1) + torch.xlogy(total, largest_weight)).abs()  # both terms are at most 0
        return entropy if self.sinks is None else entropy + torch.special.entr(1 - total.clamp(max=1))


class Max(_PerQuery):
    """The largest weight of each query, (B, H, T)."""

    def compute(self, block: Block) -> Float[Tensor, "... R"]:
        return block.weights.amax(-1)


class LargestScore(_PerQuery):
    """The largest score of each query before the softmax, with bias and mask, (B, H, T); 0 for a row without keys."""

    def compute(self, block: Block) -> Float[Tensor, "... R"]:
        return block.scores.amax(-1).nan_to_num(neginf=0.0)


class Distance(_PerQuery):
    """The mean distance between a query and its keys, weighted by attention, (B, H, T); 0 for a row without weights.

    The first query has the position of the key `first`. The weight of a sink does not count.
    """

    def __init__(self, first: int = 0) -> None:
        self.first = first

    def compute(self, block: Block) -> Float[Tensor, "... R"]:
        weights, total = block.weights, block.weights.sum(-1)
        queries = torch.arange(block.rows.start, block.rows.stop, device=weights.device) + self.first
        keys = torch.arange(block.columns.start, block.columns.stop, device=weights.device)
        distances = (queries[:, None] - keys).abs().to(weights.dtype)
        return (weights * distances).sum(-1) / total.masked_fill(total == 0, 1.0)


class Top(NamedTuple):
    """The k keys with the largest weights of each query. Missing keys have the weight 0 and the position -1."""

    weights: Float[Tensor, "B H T K"]
    """In descending order."""
    keys: Int[Tensor, "B H T K"]


class TopKeys(Measure):
    """The k keys with the largest weights of each query, as a `Top`. Keys with equal weights may be in any order."""

    def __init__(self, k: int = 8) -> None:
        self.k = k

    def start(self, call: Call) -> None:
        self.leading = len(call.leading)
        self.weights = zeros(call, call.queries.shape[-2], self.k)
        self.keys = torch.full_like(self.weights, -1, dtype=torch.int64)

    def add(self, block: Block) -> None:
        weights, keys = largest(block.weights, self.k)
        count = weights.shape[-1]
        block.query_view(self.weights)[..., :count] = weights
        block.query_view(self.keys)[..., :count] = (keys + block.columns.start).masked_fill_(weights == 0, -1)

    def result(self) -> Top:
        return Top(merge_heads(self.weights, self.leading), merge_heads(self.keys, self.leading))


def largest(weights: Float[Tensor, "... S"], k: int) -> tuple[Float[Tensor, "... K"], Int[Tensor, "... K"]]:
    """The k largest weights of each row and their positions, in descending order; all of them if there are fewer.

    They are in the k groups with the largest maxima, so only these are searched. The time hardly depends on the
    weights. `Tensor.topk` alone is five times slower if the weights increase along the row.
    """
    total = weights.shape[-1]
    groups = total // GROUP
    if groups < 2 * k:
        values, positions = weights.topk(min(k, total))
        return values, positions
    whole = groups * GROUP
    # The members of a group are `groups` apart, so the maximum over a group is a maximum of whole vectors.
    _, best = largest(weights[..., :whole].unflatten(-1, (GROUP, groups)).amax(-2), k)
    inside = (best.unsqueeze(-1) + torch.arange(0, whole, groups, device=best.device)).flatten(-2)
    rest = torch.arange(whole, total, device=best.device).expand(*inside.shape[:-1], -1)
    candidates = torch.cat([inside, rest], -1)
    values, chosen = weights.gather(-1, candidates).topk(k)
    return values, candidates.gather(-1, chosen)
