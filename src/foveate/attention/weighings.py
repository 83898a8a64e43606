"""Weights that are made of the scores of a query by another rule than the softmax.

    Sigmoid     each key by itself: the weights of a row have any sum
    Sparsemax   the nearest distribution: many weights are 0
    Entmax      between the softmax (alpha 1) and Sparsemax (alpha 2)
    TopK        the softmax over the k largest scores
    SoftmaxPlusOne  a softmax that may look at nothing
    TalkingHeads  mixtures of heads, before and after another rule

A rule of one's own is a `Weighing` with `weigh`. T queries, S keys.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention.selection import Soft, Weighing, weights
from foveate.attention.shapes import joined_heads

STEPS = 40
"""Halvings of the interval in which the threshold of an entmax lies: to the last digit of single precision."""

Scores = Float[Tensor, "... T S"]


@dataclass(frozen=True)
class Sigmoid(Weighing):
    """The sigmoid of each score plus a bias (Ramapuram et al. 2024, https://arxiv.org/abs/2409.04431).

    By default the bias is minus the logarithm of the number of keys that the query may see, so that weights begin with
    a sum of about 1: in decoding step by step as for a whole text.
    """

    bias: float | None = None

    def weigh(self, scores: Scores) -> Scores:
        if self.bias is not None:
            return (scores + self.bias).sigmoid()
        seen = (scores.detach() > -torch.inf).sum(-1, keepdim=True).clamp_min(1)
        return (scores - seen.to(scores.dtype).log()).sigmoid()


@dataclass(frozen=True)
class Entmax(Weighing):
    """Weights `max((alpha - 1) score - t, 0) ** (1 / (alpha - 1))`, whose sum is 1 (Peters et al. 2019,
    https://arxiv.org/abs/1905.05702): the larger alpha, the more of them are 0. From 1, where it is the softmax, to
    2, where it is Sparsemax."""

    alpha: float = 1.5

    def __post_init__(self) -> None:
        if not 1 <= self.alpha <= 2:
            raise ValueError(f"alpha is {self.alpha}, but must be from 1 to 2")

    def weigh(self, scores: Scores) -> Scores:
        found: Tensor = weights(scores) if self.alpha == 1 else _Entmax.apply(scores, self.alpha)  # type: ignore[no-untyped-call]
        return found


@dataclass(frozen=True)
class Sparsemax(Entmax):
    """The distribution that is nearest to the scores (Martins and Astudillo 2016, https://arxiv.org/abs/1602.02068)."""

    alpha: float = 2.0


@dataclass(frozen=True)
class TopK(Weighing):
    """The softmax over the k largest scores of a query (Gupta et al. 2021, https://arxiv.org/abs/2106.06899); all other
    weights are 0."""

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"k is {self.k}, but must be at least 1")

    def weigh(self, scores: Scores) -> Scores:
        if self.k >= scores.shape[-1]:
            return weights(scores)
        largest = scores.detach().topk(self.k, -1).indices
        left = torch.ones_like(scores, dtype=torch.bool).scatter(-1, largest, False)
        return weights(scores.masked_fill(left, -torch.inf))


@dataclass(frozen=True)
class SoftmaxPlusOne(Weighing):
    """The softmax with 1 added to its denominator (Miller 2023): weights sum to less than 1 where no key fits. That is
    one more key, with a score of 0 and no value; `Soft(sinks)` learns such scores."""

    def weigh(self, scores: Scores) -> Scores:
        return weights(scores, scores.new_zeros(()))


class TalkingHeads(nn.Module, Weighing):
    """Learned mixtures of the heads' scores before another rule, by default the softmax, and of its weights after it
    (Shazeer et al. 2020, https://arxiv.org/abs/2003.02436). Heads are the last of the leading dimensions, or the last
    ones where they are in groups; what one of them may not see, none may. The mixtures begin with each head by itself.
    """

    joins_heads = True

    def __init__(self, heads: int, rule: Weighing | None = None) -> None:
        super().__init__()
        self.rule = Soft() if rule is None else rule
        self.before, self.after = (nn.Parameter(torch.eye(heads)) for _ in range(2))

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.before, self.after, *self.rule.tensors())

    def weigh(self, scores: Float[Tensor, "... H T S"]) -> Float[Tensor, "... H T S"]:
        joined = joined_heads(scores, len(self.before))
        hidden = (joined == -torch.inf).any(-3, keepdim=True)
        mixed = torch.einsum("gh,...hts->...gts", self.before.to(scores.dtype), joined.masked_fill(hidden, 0.0))
        found = self.rule.weigh(mixed.masked_fill(hidden, -torch.inf))
        return torch.einsum("gh,...hts->...gts", self.after.to(scores.dtype), found).view(scores.shape)


class _Entmax(torch.autograd.Function):
    """The threshold is found by halving the interval in which it lies, without gradients: those of the weights need
    nothing but the weights (Peters et al. 2019, proposition 1)."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, alpha: float) -> Tensor:
        precise = scores.to(torch.promote_types(scores.dtype, torch.float32))
        nothing = (precise == -torch.inf).all(-1, keepdim=True)
        scaled = (alpha - 1) * precise.masked_fill(nothing, 0.0)
        # Of the largest score the weight is at most 1, and at least that of even weights.
        high = scaled.amax(-1, keepdim=True)
        low, high = high - 1, high - scaled.shape[-1] ** (1 - alpha)
        for _ in range(STEPS):
            middle = (low + high) / 2
            enough = _powers(scaled - middle, alpha).sum(-1, keepdim=True) >= 1
            low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
        found = _powers(scaled - low, alpha)
        found = (found / found.sum(-1, keepdim=True)).masked_fill(nothing, 0.0)
        ctx.alpha = alpha
        ctx.save_for_backward(found)
        return found.to(scores.dtype)

    @staticmethod
    def backward(ctx: Any, to_weights: Tensor) -> tuple[Tensor, None]:
        (found,) = ctx.saved_tensors
        slopes = torch.where(found > 0, found ** (2 - ctx.alpha), 0.0)
        means = (slopes * to_weights).sum(-1, keepdim=True) / slopes.sum(-1, keepdim=True).clamp_min(1e-30)
        return (slopes * (to_weights - means)).to(to_weights.dtype), None


def _powers(above: Tensor, alpha: float) -> Tensor:
    return nn.functional.relu(above) ** (1 / (alpha - 1))
