"""Greedy search, and the decoding loop that it shares with sampling."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveate.contracts import Generator, Hypothesis, State
from foveate.decoding.first_step import first_step
from foveate.decoding.ranking import hypothesis, limits, log_probs, writable
from foveate.decoding.token_rules import TokenRules
from foveate.special_tokens import SpecialTokens

Choice = Callable[[Float[Tensor, "R N"]], Int[Tensor, "R"]]
"""Chooses an index in each row of logits."""


@torch.no_grad()
def greedy(
    model: Generator,
    inputs: dict[str, Tensor],
    special: SpecialTokens,
    max_length: int | Int[Tensor, "B"],
    repetition_penalty: float = 1.0,
    rules: TokenRules | None = None,
) -> list[Hypothesis]:
    """The greedy sequence of each example, of the likeliest next tokens; its score is its log-probability.

    Tokens that a text already has become less likely by the `repetition_penalty` (see `penalize`). `rules` change the
    logits of each step.

    `max_length` is the greatest number of tokens, the end included: one number, or one for each example. A longer
    output has `ended=False`. The model should be in evaluation mode. Raises UserError for an invalid limit."""
    steps = limits(inputs, max_length)
    penalty = Penalty.of(inputs, repetition_penalty, torch.arange(len(steps), device=steps.device))
    return write(model, *first_step(model, inputs, special), special, likeliest, steps, penalty, rules)


def likeliest(logits: Float[Tensor, "R N"]) -> Int[Tensor, "R"]:
    """The index of the greatest logit of each row."""
    return logits.argmax(1)


@dataclass
class Penalty:
    """Makes tokens that a text already has less likely (Keskar et al. 2019, https://arxiv.org/abs/1909.05858)."""

    factor: float
    prompts: Int[Tensor, "R P"]
    """The tokens that each text began with."""

    @classmethod
    def of(cls, inputs: dict[str, Tensor], factor: float, rows: Int[Tensor, "R"]) -> "Penalty | None":
        """That of texts which go on from the `tokens` of some rows of the inputs, if there are any; None for 1."""
        if factor == 1:
            return None
        return cls(factor, inputs["tokens"][rows] if "tokens" in inputs else rows[:, None][:, :0])

    def __call__(self, logits: Float[Tensor, "R N"], first: int, written: Int[Tensor, "R T"]) -> Float[Tensor, "R N"]:
        """The logits of the tokens from `first` on, after what was written."""
        known = torch.cat([self.prompts, written], 1) - first
        seen = torch.zeros_like(logits, dtype=torch.bool)
        return penalize(logits, seen.scatter(1, known.clamp_min(0), known >= 0), self.factor)


def penalize(logits: Float[Tensor, "R N"], seen: Bool[Tensor, "R N"], factor: float) -> Float[Tensor, "R N"]:
    """Positive logits of tokens that were seen are divided by the factor, negative ones multiplied."""
    return torch.where(seen, torch.where(logits > 0, logits / factor, logits * factor), logits)


def write(
    model: Generator,
    logits: Float[Tensor, "R N"],
    state: State,
    special: SpecialTokens,
    choose: Choice,
    steps: Int[Tensor, "R"],
    penalty: Penalty | None = None,
    rules: TokenRules | None = None,
) -> list[Hypothesis]:
    """Decode every row of `state` until the end token or its number of `steps`; finished rows leave the batch.

    `logits` are those of each row's first token.
    """
    rows = torch.arange(len(steps), device=steps.device)
    written = torch.empty_like(rows)[:, None][:, :0]
    log_prob = torch.zeros(len(rows), device=steps.device)
    done: dict[int, Hypothesis] = {}
    for step in count(1):
        ruled = logits
        if rules is not None:
            begun = torch.cat([torch.full_like(rows[:, None], special.start), written], 1)
            ruled = rules(logits.float(), begun, steps - step + 1)
        allowed, first = writable(ruled, special)
        if penalty is not None:
            allowed = penalty(allowed.float(), first, written)
        tokens = choose(allowed) + first
        log_prob = log_prob + log_probs(logits, tokens[:, None])[:, 0]
        written = torch.cat([written, tokens[:, None]], 1)
        # A row of NaN leaves too, to be told of.
        ends = ((tokens == special.end) | (steps <= step) | log_prob.isnan()).tolist()
        if any(ends):
            leave = _places(ends, rows.device)
            done.update(_finished(rows[leave], written[leave], log_prob[leave], special.end))
            if all(ends):
                break
            stay = _places([not end for end in ends], rows.device)
            state.reorder(stay)
            rows, written, log_prob, steps = rows[stay], written[stay], log_prob[stay], steps[stay]
            penalty = None if penalty is None else replace(penalty, prompts=penalty.prompts[stay])
        logits = model.step(written[:, -1], state)
    return [done[row] for row in range(len(done))]


def _places(chosen: list[bool], device: torch.device) -> Int[Tensor, "K"]:
    """The places of those that are chosen."""
    return torch.tensor([place for place, is_chosen in enumerate(chosen) if is_chosen], device=device)


def _finished(
    rows: Int[Tensor, "R"], written: Int[Tensor, "R T"], log_prob: Float[Tensor, "R"], end: int
) -> list[tuple[int, Hypothesis]]:
    finished = []
    for row, tokens, total in zip(rows.tolist(), written.tolist(), log_prob.tolist(), strict=True):
        ended = tokens[-1] == end
        finished.append((row, hypothesis(tokens[:-1] if ended else tokens, total, total, ended)))
    return finished
