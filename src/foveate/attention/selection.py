"""What is taken from the values once the scores are known: a mean of all, or one place.

Here is the softmax over keys that every other one, fused or in blocks, must agree with.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveate.attention import scratch
from foveate.attention.shapes import broadcast

_VECTOR = 16
"""Numbers that a processor with AVX-512 takes at once."""

_WORTH_IT = 2**9
"""Fewer scores than this are done sooner than made longer."""


@dataclass
class Attended:
    """All that one attention call can tell.

    `log_sum_exp` is that of each query's scores, -inf for a query that may look nowhere. `choice` and `log_prob` are
    the place that a hard selection took (-1: nowhere) and the log-probability that it had, `entropy` (in nats) that of
    the probabilities which it was drawn by. Of a selection that remembers, `state` is what it hands to its next call;
    `weights` are there where the scores alone do not tell them.
    """

    output: Float[Tensor, "... T V"]
    log_sum_exp: Float[Tensor, "... T"] | None = None
    choice: Int[Tensor, "... T"] | None = None
    log_prob: Float[Tensor, "... T"] | None = None
    entropy: Float[Tensor, "... T"] | None = None
    weights: Float[Tensor, "... T S"] | None = None
    state: Any = None


def weights(scores: Float[Tensor, "... T S"], sinks: Float[Tensor, "..."] | None = None) -> Float[Tensor, "... T S"]:
    """The softmax over the keys; a row of nothing but -inf gives zeros, and zero gradients.

    With `sinks` (see `Soft`) a row's sum is less than 1 by what its sink takes.
    """
    if sinks is not None:
        return weights(with_sinks(scores, sinks))[..., :-1]
    if scores.device.type == "cpu" and scores.numel() and not torch.compiler.is_compiling():
        shares = _softmax(scores)
        if not _nowhere(shares):
            return shares
    return _zeros_for_nowhere(scores)


def quick_weights(
    scores: Float[Tensor, "... T S"], sinks: Float[Tensor, "..."] | None = None
) -> Float[Tensor, "... T S"]:
    """`weights` for blocks of scores, without gradients, in memory of `scratch`.

    A third of the time where every query may look somewhere, which it waits to know.
    """
    if sinks is not None:
        return weights(scores, sinks)
    if scores.numel() and not torch.compiler.is_compiling():
        shares = torch.softmax(scores, -1, out=scratch.empty(scores.shape, like=scores))
        if not _nowhere(shares):
            return shares
    return _zeros_for_nowhere(scores)


def log_sum_exp(scores: Float[Tensor, "... T S"]) -> Float[Tensor, "... T"]:
    """What each row's softmax divides by, as a logarithm; a row of nothing but -inf gives that, and zero gradients."""
    nowhere = _looks_nowhere(scores)
    return scores.masked_fill(nowhere, 0.0).logsumexp(-1).masked_fill(nowhere.squeeze(-1), -torch.inf)


def _zeros_for_nowhere(scores: Tensor) -> Tensor:
    nowhere = _looks_nowhere(scores)
    return _softmax(scores.masked_fill(nowhere, 0.0)).masked_fill(nowhere, 0.0)


def _looks_nowhere(scores: Tensor) -> Bool[Tensor, "... T 1"]:
    return (scores.detach() == -torch.inf).all(-1, keepdim=True)


def _softmax(scores: Tensor) -> Tensor:
    """The softmax over the keys; rows too short for torch's fast one on a CPU are made longer for as long as it takes.

    6,400 rows take 0.33 ms with 12 keys, 0.03 with 16 and 0.06 with 12 of 16 (one core with AVX-512).
    """
    short = _VECTOR - scores.shape[-1]
    if short <= 0 or scores.device.type != "cpu" or scores.numel() < _WORTH_IT or torch.compiler.is_compiling():
        return scores.softmax(-1)
    return nn.functional.pad(scores, (0, short), value=-torch.inf).softmax(-1)[..., :-short]


def _nowhere(shares: Tensor) -> bool:
    """Whether the softmax of some row is that of nothing but -inf: NaN, at each place, so that the first one tells."""
    try:
        return math.isnan(shares.detach()[..., 0].sum())
    except RuntimeError:  # numbers that are not there yet, as in torch.func.vmap and under fake tensors
        return True


def with_sinks(scores: Float[Tensor, "... T S"], sinks: Float[Tensor, "..."]) -> Float[Tensor, "... T S+1"]:
    """The scores with each head's sink as one more place, behind the last key."""
    shape = broadcast(scores.shape[:-1], (*sinks.shape, 1))
    sinks = sinks[..., None, None].to(scores.dtype).expand(*shape, 1)
    return torch.cat([scores.expand(*shape, -1), sinks], -1)


class Selection(ABC):
    """How values are taken by their scores."""

    sinks: Float[Tensor, "..."] | None = None
    """Of the softmax, if the selection has any; see `Soft`."""

    @abstractmethod
    def select(
        self,
        scores: Float[Tensor, "... T S"],
        values: Float[Tensor, "... S V"],
        dropout: float = 0.0,
        state: Any = None,
        generator: torch.Generator | None = None,
    ) -> Attended:
        """Take from the values; `dropout` silences places, `state` is this selection's from its previous call."""


@dataclass(frozen=True, eq=False)
class Soft(Selection):
    """The mean of all values, weighted by the softmax of the scores.

    `sinks` are scores, possibly learned, of a place without a value that takes part in the softmax: what it takes goes
    to no key (gpt-oss, OpenAI 2025; 0 is the "softmax off by one"). They have the last of the leading dimensions: (H,),
    or (G, H/G) for heads in groups. The log-sum-exp counts them. Where they are learned, the module that attends has
    them as a parameter: a selection is no module.
    """

    sinks: Float[Tensor, "..."] | None = None

    def select(
        self,
        scores: Float[Tensor, "... T S"],
        values: Float[Tensor, "... S V"],
        dropout: float = 0.0,
        state: Any = None,
        generator: torch.Generator | None = None,
    ) -> Attended:
        shares = weights(scores, self.sinks)
        if dropout:
            keep = torch.rand(shares.shape, device=shares.device, generator=generator) >= dropout
            shares = shares * keep / (1 - dropout)
        return Attended(shares.to(values.dtype) @ values)


class Hard(nn.Module, Selection):
    """The value of one place, sampled by the softmax of the scores (Xu et al. 2015); in eval mode the likeliest place.

    No gradient reaches the scores through the output: train them by REINFORCE on `Attended.log_prob`. That alone learns
    slowly, since at first no place tells anything to a layer that was never shown the right one. So in training each
    query may take the mean of all places instead, with the probability `mean` (there, section 4.1). Then there is no
    `choice`; `weights` say what was taken, and the log-probability is 0 where it was the mean.
    """

    def __init__(self, mean: float = 0.0) -> None:
        super().__init__()
        self.mean = mean

    def select(
        self,
        scores: Float[Tensor, "... T S"],
        values: Float[Tensor, "... S V"],
        dropout: float = 0.0,
        state: Any = None,
        generator: torch.Generator | None = None,
    ) -> Attended:
        if dropout:
            raise ValueError(f"dropout of {dropout} makes no sense where one place is taken; pass dropout=0")
        if not scores.shape[-1]:
            zeros = scores.sum(-1)
            return Attended(scores.to(values.dtype) @ values, None, no_choice(zeros), zeros, zeros, state=state)
        shares = weights(scores)
        place = self._place(shares, generator)
        share = shares.gather(-1, place)
        somewhere = share > 0
        log_prob = torch.where(somewhere, share, 1.0).log().squeeze(-1)
        entropy = _entropy(shares)
        if self.training and self.mean:
            means = torch.rand(log_prob.shape, device=log_prob.device, generator=generator) < self.mean
            one = torch.zeros_like(shares).scatter(-1, place, somewhere.to(shares.dtype))
            taken = torch.where(means.unsqueeze(-1), shares, one)
            log_prob = log_prob.masked_fill(means, 0.0)
            output = taken.to(values.dtype) @ values
            return Attended(output, log_prob=log_prob, entropy=entropy, weights=taken, state=state)
        leading = broadcast(place.shape[:-2], values.shape[:-2])
        index = place.expand(*leading, -1, values.shape[-1])
        output = values.expand(*leading, -1, -1).gather(-2, index) * somewhere
        choice = torch.where(somewhere, place, -1).squeeze(-1)
        return Attended(output, choice=choice, log_prob=log_prob, entropy=entropy, state=state)

    def _place(self, shares: Float[Tensor, "... T S"], generator: torch.Generator | None) -> Int[Tensor, "... T 1"]:
        """The likeliest place, or one drawn by the shares."""
        # Half precision would make many places equally likely.
        ranks = shares.detach().to(torch.promote_types(shares.dtype, torch.float32))
        if self.training:
            # The largest of p / e, with exponential e, is each place with probability p.
            ranks = ranks / torch.empty_like(ranks).exponential_(generator=generator)
        return ranks.argmax(-1, keepdim=True)


def no_choice(like: Float[Tensor, "... T"]) -> Int[Tensor, "... T"]:
    """The choice of queries that find no place to take."""
    return torch.full_like(like, -1, dtype=torch.long)


def _entropy(shares: Float[Tensor, "... T S"]) -> Float[Tensor, "... T"]:
    """The entropy of each row, in nats; where a share is 0 the gradient is 0, not infinite."""
    shares = shares.masked_fill(shares == 0, 1.0)
    return -(shares * shares.log()).sum(-1)
