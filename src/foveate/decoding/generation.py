"""Goes on from prompts, with any model of the `Generator` protocol and any special tokens, a token at a time."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveate.contracts import Generator, State
from foveate.decoding.ranking import log_probs, not_a_number
from foveate.decoding.sampling import COLDEST, candidates, check_sampling
from foveate.errors import UserError, at_least


@dataclass
class Generation:
    """How a text is continued."""

    max_new_tokens: int = 128
    """Greatest number of tokens to write."""
    temperature: float = 0.0
    """0 writes the likeliest tokens (greedy search); below 1 prefers likely tokens, above 1 is more random."""
    top_k: int | None = None
    """Draw from this many likeliest tokens only."""
    top_p: float | None = None
    """Draw from the smallest set of likeliest tokens with this probability."""
    min_p: float | None = None
    """Draw from tokens with at least this share of the likeliest token's probability."""
    repetition_penalty: float = 1.0
    """Above 1, tokens that the text already has become less likely (Keskar et al. 2019)."""
    stop: tuple[str, ...] = ()
    """Texts that end the output; they are not part of it."""

    def check(self) -> None:
        """Raise UserError for an invalid value."""
        at_least(1, "max_new_tokens", self.max_new_tokens)
        if self.temperature:
            check_sampling(1, self.temperature, self.top_k, self.top_p)
        elif any(value is not None for value in (self.top_k, self.top_p, self.min_p)):
            raise UserError("top_k, top_p and min_p choose from draws: give a temperature above 0, such as 0.7")
        if self.min_p is not None and not 0 < self.min_p <= 1:
            raise UserError(f"min_p must be greater than 0 and at most 1, not {self.min_p}")
        if not COLDEST <= self.repetition_penalty <= 1 / COLDEST:
            raise UserError(f"repetition_penalty must be above 0, not {self.repetition_penalty}; 1 changes nothing")
        if "" in self.stop:
            raise UserError("a stop text is empty: it would end every output before its first token")


@dataclass
class Written:
    """One output."""

    tokens: list[int]
    log_probs: list[float]
    """The model's log-probability of each token, before temperature, penalty and truncation, in nats."""
    ended: bool
    """False if the limit was reached, or the caller stopped it."""


OnToken = Callable[[int, int], bool]
"""Receives the row and each token that it writes; True ends the row."""


@torch.no_grad()
def generate(
    model: Generator,
    prompts: Sequence[Sequence[int]],
    settings: Generation,
    ends: Collection[int],
    generator: torch.Generator | None = None,
    on_token: OnToken = lambda row, token: False,
    positions: float = math.inf,
) -> list[Written]:
    """What the model writes after each prompt, all in one batch, padded on the left.

    `ends` are the tokens that end an output; they are not part of it. `positions` is the greatest number of tokens of
    prompt and output, without the last. The model should be in evaluation mode. Raises UserError for an empty prompt.
    """
    settings.check()
    logits, state = _prefill(model, prompts)
    seen = _mark_prompts(prompts, logits) if settings.repetition_penalty != 1 else None
    limits = [min(settings.max_new_tokens, positions + 1 - len(prompt)) for prompt in prompts]
    written = [Written([], [], False) for _ in prompts]

    def append(row: int, token: int, log_prob: float) -> bool:
        """Append a token to the output of a row; whether the row goes on."""
        output = written[row]
        if token in ends:
            output.ended = True
            return False
        output.tokens.append(token)
        output.log_probs.append(log_prob)
        return not on_token(row, token) and len(output.tokens) < limits[row]

    rows = list(range(len(prompts)))
    while True:
        tokens = choose(logits.float(), seen, settings, generator)
        found = zip(rows, tokens.tolist(), log_probs(logits, tokens[:, None])[:, 0].tolist(), strict=True)
        stay = [place for place, (row, token, log_prob) in enumerate(found) if append(row, token, log_prob)]
        if not stay:
            return written
        if seen is not None:
            seen.scatter_(1, tokens[:, None], True)
        if len(stay) < len(rows):
            places = torch.tensor(stay, device=tokens.device)
            state.reorder(places)
            rows = [rows[place] for place in stay]
            tokens, seen = tokens[places], None if seen is None else seen[places]
        logits = model.step(tokens, state)


def _prefill(model: Generator, prompts: Sequence[Sequence[int]]) -> tuple[Float[Tensor, "R N"], State]:
    """Reads the prompts, padded on the left."""
    device = next(model.parameters()).device  # type: ignore[attr-defined]
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    if not lengths.min():
        raise UserError("an empty prompt has no next token: begin it with a start token")
    padded = torch.zeros(len(prompts), int(lengths.max()), dtype=torch.long, device=device)
    for row, prompt in enumerate(prompts):
        padded[row, padded.shape[1] - len(prompt) :] = torch.tensor(prompt, device=device)
    return model.prefill(tokens=padded, lengths=lengths, padding_side="left")  # type: ignore[arg-type]


def _mark_prompts(prompts: Sequence[Sequence[int]], logits: Float[Tensor, "R N"]) -> Bool[Tensor, "R N"]:
    """Marks the tokens of each prompt."""
    seen = torch.zeros_like(logits, dtype=torch.bool)
    for row, prompt in enumerate(prompts):
        seen[row, list(prompt)] = True
    return seen


def choose(
    logits: Float[Tensor, "R N"],
    seen: Bool[Tensor, "R N"] | None,
    settings: Generation,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "R"]:
    """The next token of each row. `seen` marks the tokens that a row's text has. Raises UserError for NaN."""
    if seen is not None:
        penalty = settings.repetition_penalty
        logits = torch.where(seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)
    if not settings.temperature:
        chosen = logits.argmax(1)
        if logits.gather(1, chosen[:, None]).isnan().any():
            raise not_a_number("in decoding")
        return chosen
    # The greatest becomes 0, so that no temperature can make it overflow.
    scaled = (logits - logits.amax(1, keepdim=True)) / settings.temperature
    kept, tokens = candidates(scaled, settings.top_k, settings.top_p)
    shares = kept.softmax(1)
    if shares.isnan().any():
        raise not_a_number("in decoding")
    if settings.min_p is not None:
        shares = shares.masked_fill(shares < settings.min_p * shares.amax(1, keepdim=True), 0.0)
    places = torch.multinomial(shares, 1, generator=generator)
    return (places if tokens is None else tokens.gather(1, places))[:, 0]
