"""What every way of decoding shares: the best of many scores, log-probabilities, length limits, finished hypotheses."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.contracts import Hypothesis, UserError

_SORTED = 128
"""Rows as short as this are simply sorted."""

_CHUNK = 32
"""Rows normalised at a time: their temporary copy then stays in the cache."""


def best(scores: Float[Tensor, "R N"], count: int) -> tuple[Float[Tensor, "R K"], Int[Tensor, "R K"]]:
    """The `count` greatest scores of each row (all, if a row has fewer) and their places, best first.

    Of equal scores the one at the lower place comes first, which `torch.topk` does not promise; on a CPU this is faster
    too. The best `count` scores lie in the `count` blocks with the greatest maxima, so only these are looked into.
    """
    width = scores.shape[1]
    size = math.isqrt(width // count)
    if width <= _SORTED or size < 2:
        values, places = scores.sort(dim=1, descending=True, stable=True)
        return values[:, :count], places[:, :count]
    whole = width - width % size
    _, blocks = best(scores[:, :whole].unflatten(1, (-1, size)).amax(2), count)
    inside = blocks.sort(dim=1).values[:, :, None] * size + torch.arange(size, device=scores.device)
    rest = torch.arange(whole, width, device=scores.device).expand(len(scores), -1)
    candidates = torch.cat([inside.flatten(1), rest], 1)
    values, places = best(scores.gather(1, candidates), count)
    return values, candidates.gather(1, places)


def log_normalizer(logits: Float[Tensor, "R N"]) -> Float[Tensor, "R"]:
    """What to subtract from a row's logits to make them log-probabilities."""
    return torch.cat([rows.float().logsumexp(1) for rows in logits.split(_CHUNK)])


def hypothesis(tokens: list[int], log_prob: float, score: float, ended: bool) -> Hypothesis:
    """A finished hypothesis, refused if the model's numbers were not numbers."""
    if math.isnan(log_prob):
        steps = len(tokens) + 1
        raise UserError(f"the model gave NaN within {steps} steps of decoding; its weights are damaged or diverged")
    return Hypothesis(tokens, log_prob, score, ended)


def limits(inputs: dict[str, Tensor], max_length: int | Int[Tensor, "B"]) -> Int[Tensor, "B"]:
    """How many steps each example may take, one number for each row of the inputs.

    Raises UserError if a limit is below 1 or there is not one for each example.
    """
    first = next(iter(inputs.values()))
    if not len(first):
        raise UserError("nothing to decode: the inputs hold no example")
    lengths = torch.as_tensor(max_length, device=first.device)
    if lengths.ndim and len(lengths) != len(first):
        raise UserError(
            f"max_length has {len(lengths)} numbers for {len(first)} examples; give one for each, or one for all"
        )
    if (lengths < 1).any():
        raise UserError(f"max_length must be at least 1 (END is counted), not {int(lengths.min())}")
    return lengths.expand(len(first))
