"""Self-attention whose scores depend on those of neighbouring tokens."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.attention import Bias, Mask, Memory, MultiToken, attend_full
from foveate.attention.kernels import LARGE
from foveate.nn.attention import MultiHeadAttention


class ScoredMemory(Memory):
    """Keys and values so far, and the scores of the last queries that looked at them; earlier ones are gone."""

    can_crop = False
    eager = True
    scores: Float[Tensor, "B ... N S"] | None = None

    def reorder(self, rows: Int[Tensor, "R"]) -> None:
        super().reorder(rows)
        self.scores = None if self.scores is None else self.scores[rows]

    def repeated(self, rows: int) -> "ScoredMemory":
        found = super().repeated(rows)
        assert isinstance(found, ScoredMemory)
        found.scores = None if self.scores is None else self.scores.expand(rows, *self.scores.shape[1:])
        return found

    def fitting(self, count: int) -> int:
        """How many of the next `count` queries are read at once: as many as an eager computation has room for, since
        scores of earlier queries are read from this memory."""
        if self.scores is None:
            return count
        pairs = self.scores.shape[:-2].numel() * (self.length + count)
        return max(1, LARGE // max(1, pairs))

    def crop(self, length: int, reuse: bool = False) -> None:
        raise ValueError("the scores of earlier queries are not kept: a memory of them cannot be cropped")


class MultiTokenAttention(MultiHeadAttention):
    """Heads whose scores are convolved over the last queries and the keys around each, and whose weights are mixed in
    pairs (Golovneva et al. 2025, https://arxiv.org/abs/2504.00927), without the paper's norm of each head's output."""

    memory_kind = ScoredMemory

    def __init__(self, width: int, heads: int, **options: Any) -> None:
        rule = MultiToken(heads, group=1 if heads % 2 else 2, rule=options.pop("select", None))
        super().__init__(width, heads, select=rule, **options)

    def _attend(
        self,
        queries: Tensor,
        memory: Memory,
        mask: Mask | Tensor | None,
        bias: Bias | Tensor | None,
    ) -> Float[Tensor, "B T HV"]:
        if not isinstance(memory, ScoredMemory):
            return super()._attend(queries, memory, mask, bias)
        dtype, dropout = queries.dtype, self.dropout if self.training else 0.0
        queries, mask, bias = self._grouped(queries.to(memory.values.dtype), mask, bias)
        found = attend_full(
            queries, memory, mask=mask, bias=bias, select=self.select, dropout=dropout, state=memory.scores
        )
        memory.scores = torch.clone(found.state)
        return found.output.to(dtype).flatten(1, -3).transpose(1, 2).flatten(2)
