"""Weights that scores of neighbouring queries, keys and heads decide together."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention.selection import Attended, Soft, Weighing, dropped
from foveate.attention.shapes import joined_heads


class MultiToken(nn.Module, Weighing):
    """A learned convolution of each head's scores over queries and keys before another rule, by default the softmax,
    and learned mixtures of neighbouring heads' weights after it (multi-token attention, Golovneva et al. 2025,
    https://arxiv.org/abs/2504.00927, sections 3.1 and 3.2). Both begin with each score and head by itself.

    The score of a query is made of its own and of those of the `queries` - 1 before it, at `keys` places around a key;
    scores of keys that a query may not see count as 0. The state is the scores of the last queries: later keys, which
    those queries do not see, are hidden from them.
    """

    joins_heads = True

    def __init__(
        self, heads: int, queries: int = 6, keys: int = 11, group: int = 1, rule: Weighing | None = None
    ) -> None:
        """`group` heads are mixed with one another. Heads are the last of the leading dimensions, or the last ones
        where they are in groups."""
        super().__init__()
        if heads % group or queries < 1 or keys % 2 == 0:
            raise ValueError(f"{heads} heads in groups of {group}, {queries} queries, {keys} keys: keys must be odd")
        self.rule = Soft() if rule is None else rule
        self.earlier = queries - 1
        self.convolution = nn.Parameter(torch.zeros(heads, queries, keys))
        self.mixture = nn.Parameter(torch.eye(group).repeat(heads // group, 1, 1))
        with torch.no_grad():
            self.convolution[:, -1, keys // 2] = 1

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.convolution, self.mixture, *self.rule.tensors())

    def weigh(self, scores: Float[Tensor, "... H T S"]) -> Float[Tensor, "... H T S"]:
        """The first rows are those of queries that have none before them."""
        heads, queries, keys = self.convolution.shape
        joined = joined_heads(scores, heads)
        hidden = joined == -torch.inf
        around = F.pad(joined.masked_fill(hidden, 0.0), (keys // 2, keys // 2, queries - 1, 0))
        kernel = self.convolution.to(scores.dtype)[:, None]
        mixed = F.conv2d(around.reshape(-1, *around.shape[-3:]), kernel, groups=heads).view(joined.shape)
        found = self.rule.weigh(mixed.to(scores.dtype).masked_fill(hidden, -torch.inf))
        mixture = self.mixture.to(found.dtype)
        grouped = found.unflatten(-3, (len(mixture), -1))
        return torch.einsum("nag,...ngts->...nats", mixture, grouped).reshape(scores.shape)

    def select(
        self,
        scores: Float[Tensor, "... T S"],
        values: Float[Tensor, "... S V"],
        dropout: float = 0.0,
        state: Any = None,
        generator: torch.Generator | None = None,
    ) -> Attended:
        known, (count, keys) = scores, scores.shape[-2:]
        if state is not None:
            later = F.pad(state, (0, keys - state.shape[-1]), value=-torch.inf)
            known = torch.cat([later.to(scores.dtype), scores], -2)
        shares = self.weigh(known)[..., known.shape[-2] - count :, :]
        output = dropped(shares, dropout, generator).to(values.dtype) @ values
        kept = known[..., max(0, known.shape[-2] - self.earlier) :, :]
        return Attended(output, weights=None if state is None else shares, state=kept)
