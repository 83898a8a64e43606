"""What a folder says of the tokens that may follow: transformers' processors of scores, applied in its order.

R rows    T tokens so far, with the start    N vocabulary
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class TokenRules:
    """Changes the scores of each step, which are log-probabilities in beam search and logits otherwise."""

    first: int | None = None
    """The only token that an output may begin with (`forced_bos_token_id`)."""
    last: int | None = None
    """The only token at the greatest length (`forced_eos_token_id`)."""
    end: int | None = None
    """The token that ends an output."""
    min_length: int = 0
    """An output does not end before it has this many tokens, with the start and without the end."""
    no_repeat_ngram_size: int = 0
    """No sequence of this many tokens occurs twice in an output; 0 for any."""
    repetition_penalty: float = 1.0
    """Makes tokens that an output has less likely (Keskar et al. 2019)."""
    never: tuple[tuple[int, ...], ...] = ()
    """Sequences that are never written (`bad_words_ids`, `suppress_tokens`)."""
    never_first: tuple[int, ...] = ()
    """Tokens that no output begins with (`begin_suppress_tokens`)."""

    def __call__(
        self, scores: Float[Tensor, "R N"], written: Int[Tensor, "R T"], left: Int[Tensor, "R"]
    ) -> Float[Tensor, "R N"]:
        """The scores of the tokens after those `written`. `left` are the tokens that each output may still have."""
        scores, length = scores.clone(), written.shape[1]
        if self.repetition_penalty != 1:
            known = scores.gather(1, written)
            factor = self.repetition_penalty
            scores.scatter_(1, written, torch.where(known < 0, known * factor, known / factor))
        for row, tokens in self._repeating(written):
            scores[row, tokens] = -math.inf
        for *before, token in self.never:
            if not before:
                scores[:, token] = -math.inf
            elif len(before) < length:
                ends = (written[:, length - len(before) :] == written.new_tensor(before)).all(1)
                scores[ends, token] = -math.inf
        if self.end is not None and length < self.min_length:
            scores[:, self.end] = -math.inf
        if self.first is not None and length == 1:
            scores = _force(scores, self.first, torch.ones_like(left, dtype=torch.bool))
        if self.last is not None:
            scores = _force(scores, self.last, left <= 1)
        if self.never_first and length == 1 + (self.first is not None):
            scores[:, list(self.never_first)] = -math.inf
        return scores

    def _repeating(self, written: Int[Tensor, "R T"]) -> list[tuple[int, list[int]]]:
        """Each row and the tokens that would repeat a sequence in it."""
        size, found = self.no_repeat_ngram_size, []
        if size and written.shape[1] >= size:
            for row, tokens in enumerate(written.tolist()):
                last = tokens[len(tokens) - size + 1 :]
                starts = range(len(tokens) - size + 1)
                found.append((row, [tokens[at + size - 1] for at in starts if tokens[at : at + size - 1] == last]))
        return found


def _force(scores: Float[Tensor, "R N"], token: int, rows: Tensor) -> Float[Tensor, "R N"]:
    forced = torch.full_like(scores, -math.inf)
    forced[:, token] = 0
    return torch.where(rows[:, None], forced, scores)
