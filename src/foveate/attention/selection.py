"""Selections: what attention takes from the values, given the scores. A weighted mean, or the value of one key.

The softmax over keys here is the reference for the fused and the blocked kernels.
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
"""Single-precision numbers in an AVX-512 register."""

_WORTH_IT = 2**9
"""With fewer scores, padding them takes longer than it saves."""


@dataclass
class Attended:
    """All results of an attention call.

    `log_sum_exp` is that of each query's scores, -inf if all keys are masked. For a hard selection, `choice` is the
    index of the chosen key (-1: none), `log_prob` its log-probability and `entropy` the entropy of the distribution, in
    nats. `state` is passed to the next call of a selection with a state. `weights` are present if they do not follow
    from the scores alone."""

    output: Float[Tensor, "... T V"]
    log_sum_exp: Float[Tensor, "... T"] | None = None
    choice: Int[Tensor, "... T"] | None = None
    log_prob: Float[Tensor, "... T"] | None = None
    entropy: Float[Tensor, "... T"] | None = None
    weights: Float[Tensor, "... T S"] | None = None
    state: Any = None


def weights(scores: Float[Tensor, "... T S"], sinks: Float[Tensor, "..."] | None = None) -> Float[Tensor, "... T S"]:
    """The softmax over the keys. A row of only -inf gives zeros, with zero gradients.

    With `sinks` (see `Soft`), the weights of a row and of its sink sum to 1.
    """
    if sinks is not None:
        return weights(with_sinks(scores, sinks))[..., :-1]
    if scores.device.type == "cpu" and scores.numel() and not torch.compiler.is_compiling():
        shares = _softmax(scores)
        if not _has_masked_row(shares):
            return shares
    return _masked_softmax(scores)


def quick_weights(
    scores: Float[Tensor, "... T S"], sinks: Float[Tensor, "..."] | None = None
) -> Float[Tensor, "... T S"]:
    """`weights` for blocks of scores, without gradients, in memory of `scratch`.

    It takes a third of the time if no row is fully masked. On a GPU, it waits for the result of that check.
    """
    if sinks is not None:
        return weights(scores, sinks)
    if scores.numel() and not torch.compiler.is_compiling():
        shares = torch.softmax(scores, -1, out=scratch.empty(scores.shape, like=scores))
        if not _has_masked_row(shares):
            return shares
    return _masked_softmax(scores)


def log_sum_exp(scores: Float[Tensor, "... T S"], sinks: Float[Tensor, "..."] | None = None) -> Float[Tensor, "... T"]:
    """The log-sum-exp of each row, with that of its sink. A row of only -inf gives -inf, with zero gradients."""
    if sinks is not None:
        return log_sum_exp(with_sinks(scores, sinks))
    masked = _masked_rows(scores)
    return scores.masked_fill(masked, 0.0).logsumexp(-1).masked_fill(masked.squeeze(-1), -torch.inf)


def _masked_softmax(scores: Tensor) -> Tensor:
    masked = _masked_rows(scores)
    return _softmax(scores.masked_fill(masked, 0.0)).masked_fill(masked, 0.0)


def _masked_rows(scores: Tensor) -> Bool[Tensor, "... T 1"]:
    return (scores.detach() == -torch.inf).all(-1, keepdim=True)


def _softmax(scores: Tensor) -> Tensor:
    """The softmax over the keys. On a CPU, short rows are padded to the width of torch's vectorised code.

    6,400 rows take 0.33 ms with 12 keys, 0.03 with 16, and 0.06 with 12 padded to 16 (one core with AVX-512).
    """
    short = _VECTOR - scores.shape[-1]
    if short <= 0 or scores.device.type != "cpu" or scores.numel() < _WORTH_IT or torch.compiler.is_compiling():
        return scores.softmax(-1)
    return nn.functional.pad(scores, (0, short), value=-torch.inf).softmax(-1)[..., :-short]


def _has_masked_row(shares: Tensor) -> bool:
    """Returns whether some row of a softmax had only -inf: such a row is NaN everywhere, so its first number is
    enough."""
    try:
        return math.isnan(shares.detach()[..., 0].sum())
    except RuntimeError:  # tensors without values, as in torch.func.vmap and fake tensors
        return True


def with_sinks(scores: Float[Tensor, "... T S"], sinks: Float[Tensor, "..."]) -> Float[Tensor, "... T S+1"]:
    """The scores with the sink of each head appended as one more key."""
    shape = broadcast(scores.shape[:-1], (*sinks.shape, 1))
    sinks = sinks[..., None, None].to(scores.dtype).expand(*shape, 1)
    return torch.cat([scores.expand(*shape, -1), sinks], -1)


class Selection(ABC):
    """The rule by which an output is computed from scores and values."""

    sinks: Float[Tensor, "..."] | None = None
    """Sinks of the softmax, if any; see `Soft`."""

    reads_queries = False
    """Whether the weights depend on more of a query than its scores; see `for_queries`."""

    joins_heads = False
    """Whether the weights of a head depend on the scores of the others."""

    earlier = 0
    """How many queries before a query have scores that its weights depend on."""

    goes_on = False
    """Whether the weights of a query depend on those of the query before it, which is the state."""

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that the weights depend on besides the scores."""
        return () if self.sinks is None else (self.sinks,)

    @property
    def keeps_weights(self) -> bool:
        """Whether `Attended.weights` are present, T x S numbers that do not follow from the scores alone."""
        return False

    def for_queries(self, queries: Float[Tensor, "... T P"]) -> "Selection":
        """The rule for these (prepared) queries, if it reads more of them than their scores."""
        return self

    @abstractmethod
    def select(
        self,
        scores: Float[Tensor, "... T S"],
        values: Float[Tensor, "... S V"],
        dropout: float = 0.0,
        state: Any = None,
        generator: torch.Generator | None = None,
    ) -> Attended:
        """Compute the output. `dropout` drops weights; `state` is the `Attended.state` of the previous call."""


class Weighing(Selection):
    """The mean of all values, with weights that are made of the scores: of each query by themselves, unless
    `reads_queries`, `joins_heads` or `earlier` says otherwise."""

    def for_queries(self, queries: Float[Tensor, "... T P"]) -> "Weighing":
        return self

    @abstractmethod
    def weigh(self, scores: Float[Tensor, "... T S"]) -> Float[Tensor, "... T S"]:
        """The weights. Keys with a score of -inf have none, nor has a row of only -inf."""

    def select(
        self,
        scores: Float[Tensor, "... T S"],
        values: Float[Tensor, "... S V"],
        dropout: float = 0.0,
        state: Any = None,
        generator: torch.Generator | None = None,
    ) -> Attended:
        shares = dropped(self.weigh(scores), dropout, generator)
        return Attended(shares.to(values.dtype) @ values)


def dropped(
    shares: Float[Tensor, "... T S"], dropout: float, generator: torch.Generator | None
) -> Float[Tensor, "... T S"]:
    """Weights of which this share is dropped, and the others grow."""
    if not dropout:
        return shares
    keep = torch.rand(shares.shape, device=shares.device, generator=generator) >= dropout
    return shares * keep / (1 - dropout)


@dataclass(frozen=True, eq=False)
class Soft(Weighing):
    """The mean of all values, weighted by the softmax of the scores.

    `sinks` are scores, possibly learned, of an extra key without a value that takes part in the softmax (gpt-oss,
    OpenAI 2025; 0 is the "softmax off by one"). They have the last of the leading dimensions: (H,), or (G, H/G) for
    grouped heads. The log-sum-exp includes them. Learned sinks are a parameter of the calling module, because a
    selection is not a module.
    """

    sinks: Float[Tensor, "..."] | None = None

    def weigh(self, scores: Float[Tensor, "... T S"]) -> Float[Tensor, "... T S"]:
        return weights(scores, self.sinks)

    def select(
        self,
        scores: Float[Tensor, "... T S"],
        values: Float[Tensor, "... S V"],
        dropout: float = 0.0,
        state: Any = None,
        generator: torch.Generator | None = None,
    ) -> Attended:
        if dropout:
            return super().select(scores, values, dropout, state, generator)
        return Attended(weights(scores, self.sinks).to(values.dtype) @ values)  # one call less in each step of decoding


class Hard(nn.Module, Selection):
    """The value of one key, sampled from the softmax of the scores (Xu et al. 2015); in eval mode of the likeliest key.

    The output has no gradient for the scores: train them by REINFORCE on `Attended.log_prob`. REINFORCE alone learns
    slowly, so in training each query takes the weighted mean instead with the probability `mean` (section 4.1 of the
    paper). Then `choice` is None, `weights` are those that were used, and the log-probability of a mean is 0.
    """

    def __init__(self, mean: float = 0.0) -> None:
        super().__init__()
        self.mean = mean

    @property
    def keeps_weights(self) -> bool:
        return self.training and self.mean > 0

    def select(
        self,
        scores: Float[Tensor, "... T S"],
        values: Float[Tensor, "... S V"],
        dropout: float = 0.0,
        state: Any = None,
        generator: torch.Generator | None = None,
    ) -> Attended:
        if dropout:
            raise ValueError(f"dropout of {dropout} makes no sense for a hard selection; pass dropout=0")
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
        """The likeliest key, or one sampled from the weights."""
        # In half precision many keys would be equally likely.
        ranks = shares.detach().to(torch.promote_types(shares.dtype, torch.float32))
        if self.training:
            # With exponential e, the largest p / e is that of each key with probability p.
            ranks = ranks / torch.empty_like(ranks).exponential_(generator=generator)
        return ranks.argmax(-1, keepdim=True)


def no_choice(like: Float[Tensor, "... T"]) -> Int[Tensor, "... T"]:
    """The choice -1 of queries without keys."""
    return torch.full_like(like, -1, dtype=torch.long)


def _entropy(shares: Float[Tensor, "... T S"]) -> Float[Tensor, "... T"]:
    """The entropy of each row, in nats. The gradient of a weight of 0 is 0, not infinite."""
    shares = shares.masked_fill(shares == 0, 1.0)
    return -(shares * shares.log()).sum(-1)
