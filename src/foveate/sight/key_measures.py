"""Measures that sum over queries: the attention that each key receives, and pooled maps."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from foveate.attention.call import Call
from foveate.errors import UserError, show_value
from foveate.sight.blocks import Block, Measure, merge_heads, zeros

CELLS = 64
"""Default number of rows and columns of a pooled map."""


class Received(Measure):
    """The attention that each key receives, (B, H, S): the sum of its weights over all queries, or those that count."""

    def __init__(self, counted: Bool[Tensor, "B T"] | None = None, first: int = 0) -> None:
        """`counted` says which queries of the map count; `first` is the row of the call's first query in it."""
        self.counted = None if counted is None else counted[:, first:]

    def start(self, call: Call) -> None:
        self.leading, self.total = len(call.leading), zeros(call, call.keys.shape[-2])

    def add(self, block: Block) -> None:
        block.key_view(self.total).add_(block.weights.sum(-2) if self.counted is None else self._sum_counted(block))

    def _sum_counted(self, block: Block) -> Float[Tensor, "... K"]:
        rows = self.counted[block.box[0] if block.box else slice(None), block.rows]  # type: ignore[index]
        shares = rows.to(block.weights.dtype).reshape(-1, *[1] * (block.weights.ndim - 2), rows.shape[-1])
        return (shares @ block.weights).squeeze(-2)

    def result(self) -> Float[Tensor, "B H S"]:
        return merge_heads(self.total, self.leading)


class Propagation(Measure):
    """The product of shares of the queries, (B, N, T), and the weights averaged over heads: (B, N, S).

    Applied layer by layer from the last to the first, this is attention rollout.
    """

    def __init__(self, shares: Float[Tensor, "B N T"]) -> None:
        self.shares = shares

    def start(self, call: Call) -> None:
        self.heads = call.leading[1:].numel()
        self.total = self.shares.new_zeros(*self.shares.shape[:2], call.keys.shape[-2])

    def add(self, block: Block) -> None:
        examples = block.box[0] if block.box else slice(None)
        mean = merge_heads(block.weights, len(block.box)).sum(1) / self.heads
        self.total[examples, :, block.columns] += self.shares[examples, :, block.rows].to(mean.dtype) @ mean

    def result(self) -> Float[Tensor, "B N S"]:
        return self.total


class Pooled(Measure):
    """An exact map at lower resolution, (B, H, rows, columns).

    A cell is the total weight on its keys, averaged over its queries, so a row of cells sums to what the rows of its
    queries sum to on average. Cell n of r cells over T positions begins at floor(n T / r). There are at most as many
    cells as positions.
    """

    def __init__(self, rows: int = CELLS, columns: int = CELLS) -> None:
        self.rows, self.columns = rows, columns

    def start(self, call: Call) -> None:
        count, total, device = call.queries.shape[-2], call.keys.shape[-2], call.queries.device
        rows, columns = min(self.rows, count), min(self.columns, total)
        self.row_cells, self.column_cells = cell_indices(count, rows, device), cell_indices(total, columns, device)
        self.leading, self.total = len(call.leading), zeros(call, rows, columns)

    def add(self, block: Block) -> None:
        over, along = self.row_cells[block.rows], self.column_cells[block.columns]
        first, last = int(over[0]), int(over[-1])
        inside = torch.arange(first, last + 1, device=over.device)[:, None] == over
        summed = inside.to(block.weights.dtype) @ block.weights
        self.total[*block.box, first : last + 1].scatter_add_(-1, along.expand(summed.shape), summed)

    def result(self) -> Float[Tensor, "B H R C"]:
        return merge_heads(self.total, self.leading) / self.row_cells.bincount()[:, None]


def counted_queries(
    queries: Shaped[Tensor, "B"] | Shaped[Tensor, "B T"] | Sequence[Any],
    examples: int,
    count: int,
    device: torch.device,
) -> Bool[Tensor, "B T"]:
    """Returns which of `count` queries count in each example, from their lengths (B,) or a mask (B, T) of booleans, 0
    and 1.

    Raises UserError for another shape, and for numbers that are neither lengths nor a mask.
    """
    try:
        given = torch.as_tensor(queries).to(device)
    except (TypeError, ValueError, RuntimeError):
        expected = f"{examples} lengths or a mask of {examples} x {count}"
        raise UserError(f"queries are chosen by {expected}, not by {show_value(queries)}") from None
    if given.shape == (examples,) and not (given.is_floating_point() or given.dtype == torch.bool):
        if not 0 <= int(given.min()) <= int(given.max()) <= count:
            raise UserError(f"lengths of queries are 0 to {count}, not {int(given.min())} to {int(given.max())}")
        return torch.arange(count, device=device) < given[:, None]
    if given.shape != (examples, count):
        raise UserError(
            f"queries are chosen by {examples} lengths or a mask of {examples} x {count}, "
            f"not by {given.dtype} of {' x '.join(map(str, given.shape))}"
        )
    if not ((given == 0) | (given == 1)).all():
        raise UserError("a mask of queries holds 0 and 1 only: 1 for each query that counts")
    return given.bool()


def cell_indices(count: int, cells: int, device: torch.device | None = None) -> Int[Tensor, "T"]:
    """The cell of each of `count` positions; cell n begins at floor(n * count / cells)."""
    return (torch.arange(count, device=device) * cells + cells - 1) // max(1, count)
