"""Measures that tell something of each query: how widely and how far it looks, and at which keys most."""

from abc import abstractmethod
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.attention import scratch
from foveate.attention.call import Call
from foveate.sight.blocks import Block, Measure, by_head, room

GROUP = 8
"""So many keys have one maximum in the search for the largest."""


class _OneNumber(Measure):
    """A number for each query."""

    def start(self, call: Call) -> None:
        self.leading, self.sinks = len(call.leading), call.select.sinks
        self.found = room(call, call.queries.shape[-2])

    def add(self, block: Block) -> None:
        block.of_queries(self.found).copy_(self.of(block))

    @abstractmethod
    def of(self, block: Block) -> Float[Tensor, "... R"]:
        """The numbers of a block's queries."""

    def result(self) -> Float[Tensor, "B H T"]:
        return by_head(self.found, self.leading)


class Entropy(_OneNumber):
    """The entropy of each query's weights in nats, (B, H, T). A sink counts as one more place."""

    def of(self, block: Block) -> Float[Tensor, "... R"]:
        # The logarithm of a weight is that of the largest one and the difference of their scores: no need to take many.
        highest = block.scores.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
        below = torch.sub(block.scores, highest, out=scratch.empty(block.scores.shape, like=block.scores))
        below.clamp_(min=-1e3).mul_(block.weights)  # -inf times 0 would be no number
        total, most = block.weights.sum(-1), block.weights.amax(-1)
        entropy = (below.sum(-1) + torch.xlogy(total, most)).abs()  # neither is above 0
        return entropy if self.sinks is None else entropy + torch.special.entr(1 - total.clamp(max=1))


class Max(_OneNumber):
    """The largest weight of each query, (B, H, T)."""

    def of(self, block: Block) -> Float[Tensor, "... R"]:
        return block.weights.amax(-1)


class Distance(_OneNumber):
    """How far each query looks, (B, H, T): the mean of |its place - the key's| by its weights, 0 if it looks nowhere.

    The first query stands at the place of the key `first`. What a sink takes has no place and does not count.
    """

    def __init__(self, first: int = 0) -> None:
        self.first = first

    def of(self, block: Block) -> Float[Tensor, "... R"]:
        weights, total = block.weights, block.weights.sum(-1)
        own = torch.arange(block.rows.start, block.rows.stop, device=weights.device) + self.first
        keys = torch.arange(block.columns.start, block.columns.stop, device=weights.device)
        far = (own[:, None] - keys).abs().to(weights.dtype)
        return (weights * far).sum(-1) / total.masked_fill(total == 0, 1.0)


class Top(NamedTuple):
    """The keys that each query looks at most. Where there are fewer to look at, the weight is 0 and the key -1."""

    weights: Float[Tensor, "B H T K"]
    """Descending."""
    keys: Int[Tensor, "B H T K"]


class TopKeys(Measure):
    """The k keys that each query looks at most, a `Top`. Of keys with equal weights any may come first."""

    def __init__(self, k: int = 8) -> None:
        self.k = k

    def start(self, call: Call) -> None:
        self.leading = len(call.leading)
        self.weights = room(call, call.queries.shape[-2], self.k)
        self.keys = torch.full_like(self.weights, -1, dtype=torch.int64)

    def add(self, block: Block) -> None:
        weights, places = largest(block.weights, self.k)
        block.of_queries(self.weights)[..., : weights.shape[-1]] = weights
        block.of_queries(self.keys)[..., : weights.shape[-1]] = (places + block.columns.start).masked_fill_(
            weights == 0, -1
        )

    def result(self) -> Top:
        return Top(by_head(self.weights, self.leading), by_head(self.keys, self.leading))


def largest(weights: Float[Tensor, "... S"], k: int) -> tuple[Float[Tensor, "... K"], Int[Tensor, "... K"]]:
    """The k largest weights of each row (all, if there are fewer) and their places, descending.

    They lie in the k groups with the largest maxima, so that only these are looked into. The time that takes hardly
    depends on the weights, whereas torch's own search is five times slower where they grow from key to key.
    """
    total = weights.shape[-1]
    groups = total // GROUP
    if groups < 2 * k:
        found, places = weights.topk(min(k, total))
        return found, places
    whole = groups * GROUP
    # Members of a group lie `groups` apart, so that a maximum is one of whole vectors.
    _, best = largest(weights[..., :whole].unflatten(-1, (GROUP, groups)).amax(-2), k)
    inside = (best.unsqueeze(-1) + torch.arange(0, whole, groups, device=best.device)).flatten(-2)
    rest = torch.arange(whole, total, device=best.device).expand(*inside.shape[:-1], -1)
    candidates = torch.cat([inside, rest], -1)
    found, places = weights.gather(-1, candidates).topk(k)
    return found, candidates.gather(-1, places)
