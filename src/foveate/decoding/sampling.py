"""Sampling of outputs, token by token, from the model's distribution or from its likeliest part."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.accelerator import is_accelerator
from foveate.contracts import Generator, Hypothesis
from foveate.decoding.first_step import first_step
from foveate.decoding.greedy import Penalty, write
from foveate.decoding.ranking import best, limits
from foveate.decoding.token_rules import TokenRules
from foveate.errors import UserError
from foveate.special_tokens import SpecialTokens

COLDEST, HOTTEST = 1e-37, 1e37
"""Bounds of the temperature: it and its reciprocal are neither 0 nor infinite in single precision."""


@torch.no_grad()
def sample(
    model: Generator,
    inputs: dict[str, Tensor],
    special: SpecialTokens,
    max_length: int | Int[Tensor, "B"],
    samples: int = 1,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    rules: TokenRules | None = None,
) -> list[list[Hypothesis]]:
    """`samples` independent outputs for each example.

    Logits are divided by the `temperature`. Then the `top_k` likeliest tokens are kept, and of these the smallest set
    of likeliest tokens (the nucleus) whose probability reaches `top_p` (Holtzman et al. 2020,
    https://arxiv.org/abs/1904.09751), without those that have less than `min_p` of the likeliest one's probability.
    Tokens that a text already has become less likely by the `repetition_penalty` (see `penalize`). `rules` change the
    logits of each step. Padding and start are never drawn. `log_prob` and `score` are the model's log-probability
    before all this. A `generator` on the inputs' device makes draws reproducible.

    `max_length` is the greatest number of tokens, the end included: one number, or one for each example. The model
    should be in evaluation mode. Raises UserError for invalid settings, and if the model returns NaN."""
    check_sampling(samples, temperature, top_k, top_p, min_p)
    steps = limits(inputs, max_length)
    logits, state = first_step(model, inputs, special)
    rows = torch.arange(len(steps), device=steps.device).repeat_interleave(samples)
    if samples > 1:
        state.reorder(rows)
        logits = logits[rows]

    def choose(logits: Float[Tensor, "R N"]) -> Int[Tensor, "R"]:
        return draw(logits, temperature, top_k, top_p, min_p, generator)

    penalty = Penalty.of(inputs, repetition_penalty, rows)
    drawn = write(model, logits, state, special, choose, steps[rows], penalty, rules)
    return [drawn[start : start + samples] for start in range(0, len(drawn), samples)]


def draw(
    logits: Float[Tensor, "R N"],
    temperature: float,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "R"]:
    """A token of each row, drawn as `sample` does; any of a row of NaN, which its log-probability tells of."""
    logits = logits.float()
    # The greatest becomes 0, so that no temperature can make it overflow.
    kept, tokens = candidates((logits - logits.amax(1, keepdim=True)) / temperature, top_k, top_p)
    shares = kept.softmax(1)
    shares = shares.nan_to_num(1.0)  # without a question, for whose answer the CPU would wait
    if min_p is not None:
        shares = shares.masked_fill(shares < min_p * shares.amax(1, keepdim=True), 0.0)
    places = torch.multinomial(shares, 1, generator=generator)
    return (places if tokens is None else tokens.gather(1, places))[:, 0]


def candidates(
    logits: Float[Tensor, "R N"], top_k: int | None, top_p: float | None
) -> tuple[Float[Tensor, "R K"], Int[Tensor, "R K"] | None]:
    """The logits of tokens that may be drawn, otherwise -inf, and their token ids (None: all, in order)."""
    tokens = None
    if top_k is not None:
        logits, tokens = best(logits, top_k)
    if top_p is not None and top_p < 1:
        logits, places = _nucleus(logits, top_p)
        tokens = places if tokens is None else tokens.gather(1, places)
    return logits, tokens


def _nucleus(logits: Float[Tensor, "R N"], top_p: float) -> tuple[Float[Tensor, "R K"], Int[Tensor, "R K"]]:
    log_prob = logits.log_softmax(1)
    # Sorting a whole vocabulary is slower than most models, so try few tokens first.
    whole = logits.shape[1]
    for count in (whole,) if is_accelerator(logits.device) else (64, 512, whole):
        kept, tokens = best(log_prob, count)
        reached = kept.exp().cumsum(1)
        if count == whole or (reached[:, -1] >= top_p).all():
            break
    outside = reached - kept.exp() >= top_p
    outside[:, 0] = False  # even if `top_p` underflows in single precision
    return kept.masked_fill(outside, -torch.inf), tokens


def check_sampling(
    samples: int, temperature: float, top_k: int | None, top_p: float | None, min_p: float | None = None
) -> None:
    """Raise UserError for invalid settings of sampling."""
    if samples < 1:
        raise UserError(f"the number of samples must be at least 1, not {samples}")
    if not COLDEST <= temperature <= HOTTEST:
        raise UserError(
            f"temperature must be from {COLDEST} to {HOTTEST}, not {temperature}; use greedy search for the "
            "likeliest tokens"
        )
    if top_k is not None and top_k < 1:
        raise UserError(f"top_k must be at least 1, not {top_k}; None draws from the whole vocabulary")
    if top_p is not None and not 0 < top_p <= 1:
        raise UserError(f"top_p must be greater than 0 and at most 1, not {top_p}")
    if min_p is not None and not 0 < min_p <= 1:
        raise UserError(f"min_p must be greater than 0 and at most 1, not {min_p}")
