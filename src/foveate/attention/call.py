"""An attention call as a value: the input of a kernel, and what a recording keeps."""

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from foveate.attention.biases import Bias
from foveate.attention.masks import Mask
from foveate.attention.scores import Score
from foveate.attention.selection import Selection
from foveate.attention.shapes import broadcast


@dataclass(eq=False, slots=True)
class Call:
    """Queries and keys prepared by the score, values, and everything that the weights depend on."""

    queries: Float[Tensor, "... T P"]
    keys: Float[Tensor, "... S K"]
    """As wide as the queries, K = P, for most scores."""
    values: Float[Tensor, "... S V"]
    score: Score
    mask: Mask | None
    bias: Bias | None
    select: Selection
    dropout: float
    full: bool
    """Whether the log-sum-exp is computed too."""
    state: Any = None
    generator: torch.Generator | None = None
    projected: bool = False
    """Whether the layer that attends has projected queries and keys, and nothing else writes to them: a recording need
    not copy them."""
    _leading: torch.Size | None = field(default=None, init=False, repr=False)

    @property
    def leading(self) -> torch.Size:
        """The leading dimensions of the output: those of queries, keys and values, broadcast.

        Raises RuntimeError if they do not broadcast.
        """
        if self._leading is None:  # no cached_property: its lock in Python 3.11 cannot be compiled
            queries, keys, values = self.queries.shape[:-2], self.keys.shape[:-2], self.values.shape[:-2]
            self._leading = queries if queries == keys == values else broadcast(queries, keys, values)
        return self._leading

    @property
    def scale(self) -> float | None:
        """The factor of a dot-product score; None for other scores."""
        return self.score.scale(self.queries.shape[-1])

    @property
    def numbers(self) -> int:
        """The numbers that an eager computation holds: T x S for each head and example, times C for an additive
        score."""
        pairs = self.leading.numel() * self.queries.shape[-2] * self.keys.shape[-2]
        return pairs * self.score.footprint(self.queries.shape[-1])

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that the weights depend on besides queries and keys."""
        of_bias = () if self.bias is None else self.bias.tensors()
        of_mask = () if self.mask is None else self.mask.tensors()
        return (*self.score.tensors(), *of_bias, *of_mask, *self.select.tensors())

    def around(self, rows: range) -> range:
        """These queries, and those before them that their weights depend on."""
        return range(max(0, rows.start - self.select.earlier), rows.stop)

    def scores(self, rows: range | None = None, columns: range | None = None) -> Float[Tensor, "... T S"]:
        """The scores of these queries and keys (by default all) with the bias, -inf where the mask hides a key."""
        rows = range(self.queries.shape[-2]) if rows is None else rows
        columns = range(self.keys.shape[-2]) if columns is None else columns
        queries = self.queries[..., rows.start : rows.stop, :]
        keys = self.keys[..., columns.start : columns.stop, :]
        scores = self.score.block(queries, keys)
        if self.bias is None and self.mask is None:
            return scores
        return self.finish(scores, queries, rows, columns)

    def finish(self, scores: Tensor, queries: Tensor, rows: range, columns: range) -> Float[Tensor, "... T S"]:
        """Add the bias to the scores of a block and apply the mask."""
        if self.bias is not None:
            scores = scores + self.bias.block(queries, rows, columns)
        if self.mask is not None:
            allowed = self.mask.block(rows, columns, len(self.leading), scores.device)
            scores = scores.masked_fill(~allowed, -torch.inf)
        return scores
