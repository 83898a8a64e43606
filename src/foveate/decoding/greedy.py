"""Greedy search, and the decoding loop that it shares with sampling."""

from collections.abc import Callable
from itertools import count

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.contracts import Generator, Hypothesis, State
from foveate.decoding.first_step import first_step
from foveate.decoding.ranking import hypothesis, limits, log_probs, writable
from foveate.special_tokens import SpecialTokens

Choice = Callable[[Float[Tensor, "R N"]], Int[Tensor, "R"]]
"""Chooses an index in each row of logits."""


@torch.no_grad()
def greedy(
    model: Generator,
    inputs: dict[str, Tensor],
    special: SpecialTokens,
    max_length: int | Int[Tensor, "B"],
) -> list[Hypothesis]:
    """The greedy sequence of each example, of the likeliest next tokens; its score is its log-probability.

    `max_length` is the greatest number of tokens, the end included: one number, or one for each example. A longer
    output has `ended=False`. The model should be in evaluation mode. Raises UserError for an invalid limit."""
    steps = limits(inputs, max_length)
    return write(model, *first_step(model, inputs, special), special, _likeliest, steps)


def _likeliest(logits: Float[Tensor, "R N"]) -> Int[Tensor, "R"]:
    return logits.argmax(1)


def write(
    model: Generator,
    logits: Float[Tensor, "R N"],
    state: State,
    special: SpecialTokens,
    choose: Choice,
    steps: Int[Tensor, "R"],
) -> list[Hypothesis]:
    """Decode every row of `state` until the end token or its number of `steps`; finished rows leave the batch.

    `logits` are those of each row's first token.
    """
    rows = torch.arange(len(steps), device=steps.device)
    written = torch.empty_like(rows)[:, None][:, :0]
    log_prob = torch.zeros(len(rows), device=steps.device)
    done: dict[int, Hypothesis] = {}
    for step in count(1):
        allowed, first = writable(logits, special)
        tokens = choose(allowed) + first
        log_prob = log_prob + log_probs(logits, tokens[:, None])[:, 0]
        written = torch.cat([written, tokens[:, None]], 1)
        leave = (tokens == special.end) | (steps <= step)
        if leave.any():
            done.update(_finished(rows[leave], written[leave], log_prob[leave], special.end))
            stay = (~leave).nonzero()[:, 0]
            if not len(stay):
                break
            state.reorder(stay)
            rows, written, log_prob, steps = rows[stay], written[stay], log_prob[stay], steps[stay]
        logits = model.step(written[:, -1], state)
    return [done[row] for row in range(len(done))]


def _finished(
    rows: Int[Tensor, "R"], written: Int[Tensor, "R T"], log_prob: Float[Tensor, "R"], end: int
) -> list[tuple[int, Hypothesis]]:
    finished = []
    for row, tokens, total in zip(rows.tolist(), written.tolist(), log_prob.tolist(), strict=True):
        ended = tokens[-1] == end
        finished.append((row, hypothesis(tokens[:-1] if ended else tokens, total, total, ended)))
    return finished
