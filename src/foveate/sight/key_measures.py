"""Measures that sum over queries: how much each key is looked at, and small maps of long ones."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.attention.call import Call
from foveate.sight.blocks import Block, Measure, by_head, room

CELLS = 64
"""A side of a small map, unless told otherwise."""


class Received(Measure):
    """How much each key is looked at, (B, H, S): the sum of its weights over all queries."""

    def start(self, call: Call) -> None:
        self.leading, self.found = len(call.leading), room(call, call.keys.shape[-2])

    def add(self, block: Block) -> None:
        block.of_keys(self.found).add_(block.weights.sum(-2))

    def result(self) -> Float[Tensor, "B H S"]:
        return by_head(self.found, self.leading)


class Carried(Measure):
    """What becomes of shares of the queries, (B, N, T): they times the mean of all heads' weights, (B, N, S).

    From layer to layer downwards, this is attention rollout.
    """

    def __init__(self, shares: Float[Tensor, "B N T"]) -> None:
        self.shares = shares

    def start(self, call: Call) -> None:
        self.heads = call.leading[1:].numel()
        self.found = self.shares.new_zeros(*self.shares.shape[:2], call.keys.shape[-2])

    def add(self, block: Block) -> None:
        examples = block.box[0] if block.box else slice(None)
        mean = by_head(block.weights, len(block.box)).sum(1) / self.heads
        self.found[examples, :, block.columns] += self.shares[examples, :, block.rows].to(mean.dtype) @ mean

    def result(self) -> Float[Tensor, "B N S"]:
        return self.found


class Pooled(Measure):
    """A small exact map of a long one, (B, H, rows, columns).

    A cell is the mean over its queries of their total weight on its keys, so that a row sums to what its queries do, as
    their mean. The n-th of r cells over T places begins at floor(n T / r); there are at most as many cells as places.
    """

    def __init__(self, rows: int = CELLS, columns: int = CELLS) -> None:
        self.rows, self.columns = rows, columns

    def start(self, call: Call) -> None:
        count, total, device = call.queries.shape[-2], call.keys.shape[-2], call.queries.device
        rows, columns = min(self.rows, count), min(self.columns, total)
        self.over, self.along = cells(count, rows, device), cells(total, columns, device)
        self.leading, self.found = len(call.leading), room(call, rows, columns)

    def add(self, block: Block) -> None:
        over, along = self.over[block.rows], self.along[block.columns]
        first, last = int(over[0]), int(over[-1])
        inside = torch.arange(first, last + 1, device=over.device)[:, None] == over
        summed = inside.to(block.weights.dtype) @ block.weights
        self.found[*block.box, first : last + 1].scatter_add_(-1, along.expand(summed.shape), summed)

    def result(self) -> Float[Tensor, "B H R C"]:
        return by_head(self.found, self.leading) / self.over.bincount()[:, None]


def cells(count: int, number: int, device: torch.device | None = None) -> Int[Tensor, "T"]:
    """The cell of each place, where so many cells share them: the n-th begins at floor(n * count / number)."""
    return (torch.arange(count, device=device) * number + number - 1) // max(1, count)
