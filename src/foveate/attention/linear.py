"""Attention whose weights are the scores themselves: linear attention and what forgets as it goes.

With weights that are products of a query and a key, the sum over all keys is a matrix of fixed size: a model reads a
text in time that is linear in its length, and decodes with a state that does not grow.

    Linear      the weights are the scores, over their sum or as they are
    Features    the score: dot product of feature maps of queries and keys
    Fading      the score: dot product, the smaller the more was forgotten between key and query
    corrected   values of the delta rule: what a key should hold, less what it holds already

T queries, S keys.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention.scores import Score
from foveate.attention.selection import Attended, Weighing
from foveate.attention.shapes import precise

CHUNK = 64
"""Places that are computed at once, each with all others of its chunk."""


@dataclass(frozen=True)
class Linear(Weighing):
    """Weights that are the scores, over their sum (Katharopoulos et al. 2020, https://arxiv.org/abs/2006.16236) or as
    they are (Sun et al. 2023, https://arxiv.org/abs/2307.08621). Over their sum, scores must be positive.

    Calls without a bias, with no mask, a causal one or one of keys alone, take time that is linear in T and S. Their
    `state` (..., P, V), for scores of width P, holds all keys and values so far; with `normalize`, (..., P, V + 1).
    """

    normalize: bool = True

    def weigh(self, scores: Float[Tensor, "... T S"]) -> Float[Tensor, "... T S"]:
        found = scores.masked_fill(scores == -torch.inf, 0.0)
        if not self.normalize:
            return found
        sums = found.sum(-1, keepdim=True)
        return found / torch.where(sums == 0, 1.0, sums)

    def select(
        self,
        scores: Float[Tensor, "... T S"],
        values: Float[Tensor, "... S V"],
        dropout: float = 0.0,
        state: Any = None,
        generator: torch.Generator | None = None,
    ) -> Attended:
        if state is not None:
            raise ValueError("linear attention goes on from a state only without bias, dropout and masks but causal()")
        return super().select(scores, values, dropout, state, generator)


class Features(nn.Module, Score):
    """The dot product of `map(q)` and `map(k)`; a map with parameters or random numbers must be a module."""

    def __init__(self, map: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.map = map

    def queries(self, q: Float[Tensor, "... T D"]) -> Float[Tensor, "... T P"]:
        found: Tensor = self.map(q)
        return found

    def keys(self, k: Float[Tensor, "... S D"]) -> Float[Tensor, "... S P"]:
        return self.queries(k)

    def scale(self, width: int) -> float:
        return 1.0


def positive(x: Float[Tensor, "... D"]) -> Float[Tensor, "... D"]:
    """elu(x) + 1, the feature map of Katharopoulos et al. (2020)."""
    return F.elu(x) + 1


def taylor(x: Float[Tensor, "... D"]) -> Float[Tensor, "... P"]:
    """Features whose products are 1 + s + s^2 / 2 for the scaled dot product s, the beginning of exp(s) (Arora et al.
    2024, https://arxiv.org/abs/2402.18668); P = 1 + D + D^2."""
    x = x / x.shape[-1] ** 0.25
    squares = (x[..., :, None] * x[..., None, :]).flatten(-2) / math.sqrt(2)
    return torch.cat([torch.ones_like(x[..., :1]), x, squares], -1)


class RandomFeatures(nn.Module):
    """Features whose products are exp(s) of the scaled dot product s in the mean (Performer, Choromanski et al. 2021,
    https://arxiv.org/abs/2009.14794): exp(w·x - |x|^2 / 2) for `count` directions w that are orthogonal in groups."""

    directions: Tensor

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        groups = [torch.linalg.qr(torch.randn(width, width)).Q for _ in range(-(-count // width))]
        lengths = torch.randn(count, width).norm(dim=-1, keepdim=True)
        self.register_buffer("directions", torch.cat(groups)[:count] * lengths)

    def forward(self, x: Float[Tensor, "... D"]) -> Float[Tensor, "... P"]:
        x = x / x.shape[-1] ** 0.25
        # One constant for all features cancels in weights over their sum, and keeps them from growing without bound.
        exponents = x @ self.directions.mT - x.square().sum(-1, keepdim=True) / 2
        return (exponents - self.directions.square().sum(-1).max() / 4).exp()


@dataclass(frozen=True)
class Fading(Score):
    """The dot product, times what is left of the key where the query stands.

    The last number of queries and keys is the logarithm of what is left at their place of what was there in the
    beginning, so that the weight has the factor exp(at the query - at the key); see `fading`.
    """

    def block(self, queries: Float[Tensor, "... T P"], keys: Float[Tensor, "... S P"]) -> Float[Tensor, "... T S"]:
        left = (queries[..., -1:] - keys[..., -1:].mT).clamp(max=0.0)  # of later keys too, which a mask hides
        return queries[..., :-1] @ keys[..., :-1].mT * left.exp()


def fading(
    q: Float[Tensor, "... T D"], k: Float[Tensor, "... T D"], log_decay: Float[Tensor, "... T"]
) -> tuple[Float[Tensor, "... T D+1"], Float[Tensor, "... T D+1"]]:
    """Queries and keys for `Fading`. `log_decay` is the logarithm of the share that is left at each place of what was
    there at the place before: 0 for all, at least -100 for nothing."""
    left = precise(log_decay).cumsum(-1)[..., None]
    return tuple(torch.cat([part, left.expand(*part.shape[:-1], 1)], -1) for part in (q, k))  # type: ignore[return-value]


def corrected(
    k: Float[Tensor, "... T D"],
    v: Float[Tensor, "... T V"],
    strength: Float[Tensor, "... T"],
    log_decay: Float[Tensor, "... T"] | None = None,
    state: Float[Tensor, "... D V"] | None = None,
) -> Float[Tensor, "... T V"]:
    """The values of the delta rule (Schlag et al. 2021, https://arxiv.org/abs/2102.11174; with decay Yang et al. 2024,
    https://arxiv.org/abs/2412.06464): `strength` times the difference between v and what k finds already.

    Attention to them is causal, without normalizing: `attend(q, k, corrected(k, v, strength), mask=causal(),
    score=Dot(), select=Linear(normalize=False))`. `state` is what was held before the first place. In chunks, whose
    places depend on one another by a triangular system (Yang et al. 2024, https://arxiv.org/abs/2406.06484).
    """
    decays = torch.zeros_like(strength) if log_decay is None else precise(log_decay)
    held = k.new_zeros(*k.shape[:-2], k.shape[-1], v.shape[-1]) if state is None else state
    found = []
    for keys, values, some, steps in zip(
        *(part.split(CHUNK, -2) for part in (k, v)),
        *(part.split(CHUNK, -1) for part in (strength, decays)),
        strict=True,
    ):
        left = steps.cumsum(-1)[..., None]
        between = (left - left.mT).clamp(max=0.0).exp()
        system = (some[..., None] * (keys @ keys.mT) * between).tril(-1)
        wanted = some[..., None] * (values - (keys * left.exp()) @ held)
        written = torch.linalg.solve_triangular(system, wanted, upper=False, unitriangular=True)
        found.append(written)
        held = held * left[..., -1:, :].exp() + (keys * (left[..., -1:, :] - left).exp()).mT @ written
    return torch.cat(found, -2) if found else v * strength[..., None]
