"""Monotonic selection: each query goes on from the place where the one before it stopped.

The queries of a call follow one another, and those of the next call follow these, by its `state`.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention.selection import Attended, Selection, no_choice


class Monotonic(nn.Module, Selection):
    """Left to right through the keys, as pairs of sentences and of sound and text mostly go (Raffel et al. 2017).

    From where the query before it stopped, a query passes key after key and stops at each with the probability
    `sigmoid(score + offset)`; it takes the value of the key where it stops, or nothing if it passes them all. Training
    takes the mean over all ways to go, which has gradients, with noise on the scores so that the probabilities become
    decided; in eval mode a query stops at the first key whose probability is above a half.

    `Attended.weights` has the probability that each query stops at each key, `Attended.state` that of the last query.
    """

    def __init__(self, offset: float = -1.0, noise: float = 1.0) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.tensor(offset))
        self.noise = noise

    def select(
        self,
        scores: Float[Tensor, "... T S"],
        values: Float[Tensor, "... S V"],
        dropout: float = 0.0,
        state: Any = None,
        generator: torch.Generator | None = None,
    ) -> Attended:
        if dropout:
            raise ValueError(f"dropout of {dropout} makes no sense where a place is chosen; pass dropout=0")
        exact = scores.to(torch.promote_types(scores.dtype, torch.float32)) + self.offset
        before = _beginning(exact) if state is None else state
        if not exact.numel():
            choice = None if self.training else no_choice(exact.sum(-1))
            return Attended(exact.to(values.dtype) @ values, choice=choice, weights=exact, state=before)
        if self.training:
            noise = torch.empty_like(exact).normal_(generator=generator)
            with torch.autocast(exact.device.type, enabled=False):  # it would round each query's chances for the next
                weights, state = _expected(exact + self.noise * noise, before)
            return Attended(weights.to(values.dtype) @ values, weights=weights, state=state)
        weights, state = _first(exact > 0, before)
        choice = torch.where(weights.any(-1), weights.argmax(-1), -1)
        return Attended(weights.to(values.dtype) @ values, choice=choice, weights=weights, state=state)


def _beginning(scores: Float[Tensor, "... T S"]) -> Float[Tensor, "... S"]:
    """All begin at the first key."""
    before = scores.new_zeros(*scores.shape[:-2], scores.shape[-1])
    before[..., :1] = 1
    return before


def _expected(
    scores: Float[Tensor, "... T S"], before: Float[Tensor, "... S"]
) -> tuple[Float[Tensor, "... T S"], Float[Tensor, "... S"]]:
    """The probability of each query to stop at each key, and that of the last query.

    A query arrives at a key from wherever the one before it stopped, if it passed all keys between: products that are
    differences of summed logarithms, S x S of them for a query. (To divide products from the first key on costs only S,
    but they vanish within a few keys.)
    """
    rows, count = [], scores.shape[-1]
    back = torch.ones(count, count, dtype=torch.bool, device=scores.device).tril(-1)
    for row in scores.unbind(-2):
        passed = nn.functional.logsigmoid(-row).cumsum(-1).roll(1, -1)
        passed = torch.cat([torch.zeros_like(passed[..., :1]), passed[..., 1:]], -1)  # up to, but without, each key
        from_to = (passed.unsqueeze(-2) - passed.unsqueeze(-1)).masked_fill(back, -torch.inf).exp()
        before = row.sigmoid() * (before.unsqueeze(-2) @ from_to).squeeze(-2)
        rows.append(before)
    return torch.stack(rows, -2), before


def _first(stops: Tensor, before: Float[Tensor, "... S"]) -> tuple[Float[Tensor, "... T S"], Float[Tensor, "... S"]]:
    """1 at the first key, from the last place on, where a query stops. Who stops nowhere leaves the place as it was."""
    rows = []
    for stop in stops.unbind(-2):
        open_to = stop & (before.cumsum(-1) > 0)
        row = (open_to & (open_to.cumsum(-1) == 1)).to(before.dtype)
        before = torch.where(row.any(-1, keepdim=True), row, before)
        rows.append(row)
    return torch.stack(rows, -2), before
