"""Masks that are made of ranks: who comes first in an order of the tokens that is not that of their positions."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from foveate.attention.masks import Mask


def by_rank(query_ranks: Int[Tensor, "B T"], key_ranks: Int[Tensor, "B S"]) -> Mask:
    """A query may look at the keys of its own rank and below (the factorization order of Yang et al. 2019, XLNet).

    Memory is linear in T and S. B is the first of the leading dimensions. To hide the keys of a query's own rank, pass
    `query_ranks - 1`.
    """
    return _ByRank(query_ranks, key_ranks)


@dataclass(frozen=True, eq=False)
class _ByRank(Mask):
    query_ranks: Tensor
    key_ranks: Tensor

    def block(self, rows: range, columns: range, leading: int, device: torch.device) -> Bool[Tensor, "... T S"]:
        queries = self.query_ranks[:, rows.start : rows.stop, None]
        keys = self.key_ranks[:, None, columns.start : columns.stop]
        allowed = keys <= queries
        return allowed.reshape(len(allowed), *(1,) * (leading - 1), *allowed.shape[1:])

    def shape(self, leading: int) -> torch.Size:
        queries, keys = self.query_ranks.shape, self.key_ranks.shape
        return torch.Size((queries[0], *(1,) * (leading - 1), queries[1], keys[1]))

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.query_ranks, self.key_ranks)
