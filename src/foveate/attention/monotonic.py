"""Monotonic selection: each query continues from the key that the query before it chose.

The queries of a call are consecutive. The `state` of a call connects it to the next one.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention.autocast import without_autocast
from foveate.attention.selection import Attended, Selection, no_choice


class Monotonic(nn.Module, Selection):
    """Monotonic attention, from left to right through the keys (Raffel et al. 2017).

    A query starts at the key of the query before it and stops at each key with the probability
    `sigmoid(score + offset)`. Its output is the value of the key where it stops, or zeros if it passes all keys. In
    training, the output is the expectation over all paths, which has gradients. Noise on the scores makes the
    probabilities decided. In eval mode, a query stops at the first key with a probability above a half.

    `Attended.weights` is the probability that each query stops at each key, `Attended.state` that of the last query.
    """

    goes_on = True

    def __init__(self, offset: float = -1.0, noise: float = 1.0) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.tensor(offset))
        self.noise = noise

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.offset,)

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
        if dropout:
            raise ValueError(f"dropout of {dropout} makes no sense for a monotonic selection; pass dropout=0")
        exact = scores.to(torch.promote_types(scores.dtype, torch.float32)) + self.offset
        before = _beginning(exact) if state is None else state
        if not exact.numel():
            choice = None if self.training else no_choice(exact.sum(-1))
            return Attended(exact.to(values.dtype) @ values, choice=choice, weights=exact, state=before)
        if self.training:
            noise = torch.empty_like(exact).normal_(generator=generator)
            with without_autocast(exact.device):  # rounding errors would add up over the queries
                weights, state = _expected(exact + self.noise * noise, before)
            return Attended(weights.to(values.dtype) @ values, weights=weights, state=state)
        weights, state = _first(exact > 0, before)
        choice = torch.where(weights.any(-1), weights.argmax(-1), -1)
        return Attended(weights.to(values.dtype) @ values, choice=choice, weights=weights, state=state)


def _beginning(scores: Float[Tensor, "... T S"]) -> Float[Tensor, "... S"]:
    """The state before the first query: position 0."""
    before = scores.new_zeros(*scores.shape[:-2], scores.shape[-1])
    before[..., :1] = 1
    return before


def _expected(
    scores: Float[Tensor, "... T S"], before: Float[Tensor, "... S"]
) -> tuple[Float[Tensor, "... T S"], Float[Tensor, "... S"]]:
    """The probability of each query to stop at each key, and that of the last query.

    A query is at key j if the query before it stopped there, or if it was at key j - 1 and passed it (equation 16 of
    the paper).
    """
    stops, passes = scores.sigmoid(), nn.functional.pad((-scores).sigmoid()[..., :-1], (1, 0))
    rows = []
    for stop, passed in zip(stops.unbind(-2), passes.unbind(-2), strict=True):
        before = stop * _Carried.apply(passed, before)  # type: ignore[no-untyped-call]
        rows.append(before)
    return torch.stack(rows, -2), before


class _Carried(torch.autograd.Function):
    """`held_j = kept_j * held_{j-1} + given_j` along the last dimension, in memory that is linear in its length."""

    @staticmethod
    def forward(ctx: Any, kept: Tensor, given: Tensor) -> Tensor:
        held = _carried(kept, given)
        ctx.save_for_backward(kept, held)
        return held

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, to_held: Tensor) -> tuple[Tensor, Tensor]:
        kept, held = ctx.saved_tensors
        back = nn.functional.pad(kept[..., 1:], (0, 1)).flip(-1)
        to_given = _carried(back, to_held.flip(-1)).flip(-1)
        return nn.functional.pad(to_given[..., 1:] * held[..., :-1], (1, 0)), to_given


def _carried(kept: Tensor, given: Tensor) -> Tensor:
    """Over 1, 2, 4 and more places at once: all terms are between 0 and 1, so that none cancels or overflows."""
    kept, held, step = kept.clone(), given.clone(), 1
    while step < held.shape[-1]:
        held[..., step:] += kept[..., step:] * held[..., :-step]
        kept[..., step:] = kept[..., step:] * kept[..., :-step]
        step *= 2
    return held


def _first(stops: Tensor, before: Float[Tensor, "... S"]) -> tuple[Float[Tensor, "... T S"], Float[Tensor, "... S"]]:
    """1 at the first key, from the last position on, where a query stops. A query that does not stop keeps the
    state."""
    rows = []
    for stop in stops.unbind(-2):
        open_to = stop & (before.cumsum(-1) > 0)
        row = (open_to & (open_to.cumsum(-1) == 1)).to(before.dtype)
        before = torch.where(row.any(-1, keepdim=True), row, before)
        rows.append(row)
    return torch.stack(rows, -2), before
