"""Goes on from prompts, with any model of the `Generator` protocol and any special tokens, a token at a time."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveate.attention import hooks
from foveate.contracts import Generator, State
from foveate.decoding.drafts import DraftedState, DraftReader, Drafts
from foveate.decoding.greedy import likeliest, penalize
from foveate.decoding.ranking import log_probs, not_a_number
from foveate.decoding.sampling import draw
from foveate.decoding.settings import Decoding
from foveate.errors import UserError


@dataclass
class Generated:
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
    settings: Decoding,
    ends: Collection[int],
    generator: torch.Generator | None = None,
    on_token: OnToken = lambda row, token: False,
    positions: float = math.inf,
) -> list[Generated]:
    """Continues each prompt by greedy search or sampling, all in one batch, padded on the left.

    `ends` are the tokens that end an output; they are not part of it. `positions` is the greatest number of tokens of
    prompt and output, without the last. The model should be in evaluation mode. Raises UserError for an empty prompt.
    """
    settings.check()
    if settings.method == "beam":
        raise UserError("outputs are written token by token here: choose the method greedy or sample")
    logits, state = _prefill(model, prompts)
    seen = _mark_prompts(prompts, logits) if settings.repetition_penalty != 1 else None
    limits = [min(_most(settings, len(prompt)), positions + 1 - len(prompt)) for prompt in prompts]
    written = [Generated([], [], False) for _ in prompts]

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
    if len(rows) == 1 and seen is None and _is_drafted(model, state, settings):
        _write_drafted(model, logits, state, Drafts(prompts[0]), lambda: limits[0] - len(written[0].tokens), append)
        return written
    while True:
        tokens = choose(logits.float(), seen, settings, generator)
        found = zip(rows, *_read(tokens, logits), strict=True)
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


def _read(tokens: Int[Tensor, "R"], logits: Float[Tensor, "R N"]) -> tuple[list[int], list[float]]:
    """Tokens and their log-probabilities, on the CPU. Raises UserError for one that is not a number."""
    # Both are read together: numbers below 2**24 are exact in single precision.
    chosen, nats = torch.stack([tokens.float(), log_probs(logits, tokens[:, None])[:, 0]]).tolist()
    if any(map(math.isnan, nats)):
        raise not_a_number("in decoding")
    return [*map(int, chosen)], nats


def _is_drafted(model: Generator, state: State, settings: Decoding) -> bool:
    """Returns whether the next tokens may be guessed: by greedy search, where tokens that are read together are read as
    if alone, and unless somebody looks at the single steps."""
    if settings.draws or not (isinstance(model, DraftReader) and isinstance(state, DraftedState)):
        return False
    parts: Iterable[object] = model.modules() if isinstance(model, nn.Module) else ()
    apart = not any(getattr(part, "depends_on_batch", False) for part in parts)
    return apart and state.can_crop and hooks.interceptor is None


def _write_drafted(
    model: Any,
    logits: Float[Tensor, "1 N"],
    state: Any,
    drafts: Drafts,
    left: Callable[[], float],
    append: Callable[[int, int, float], bool],
) -> None:
    """Write the only row by greedy search, with as few steps of the model as drafts allow. `left` is the number of
    tokens that it may still have."""
    guess: list[int] = []
    while True:
        # The token after what was read, and after each token of the guess that the model would have written.
        chosen, nats = _read(likeliest(logits.float()), logits)
        right = next((place for place, token in enumerate(guess) if token != chosen[place]), len(guess))
        for token, log_prob in zip(chosen[: right + 1], nats, strict=False):
            if not append(0, token, log_prob):
                return
            drafts.append(token)
        drafts.learn(len(guess), right)
        state.crop(len(guess) - right)
        guess = drafts.guess(int(left()) - 1)
        logits = model.steps(torch.tensor([[chosen[right], *guess]], device=logits.device), state)[0]


def _most(settings: Decoding, length: int) -> int:
    """The greatest number of tokens after a prompt of this length."""
    if settings.max_new_tokens is not None:
        return settings.max_new_tokens
    return int(settings.length_factor * length) + settings.length_extra


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
    settings: Decoding,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "R"]:
    """The next token of each row. `seen` marks the tokens that a row's text has."""
    if seen is not None:
        logits = penalize(logits, seen, settings.repetition_penalty)
    if settings.draws:
        found: Int[Tensor, "R"] = draw(
            logits, settings.temperature, settings.top_k, settings.top_p, settings.min_p, generator
        )
        return found
    return likeliest(logits)
