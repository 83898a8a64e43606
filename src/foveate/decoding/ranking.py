"""Helpers of all decoding methods: top scores, log-probabilities, length limits, hypotheses."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveate.accelerator import is_accelerator
from foveate.contracts import Hypothesis
from foveate.errors import UserError
from foveate.finite import NotFinite
from foveate.special_tokens import SpecialTokens

_BLOCK = 128
"""Scores in a block, of which only the greatest is compared first."""

_CACHED = 2**18
"""Numbers in a temporary table: few enough for the cache."""

LONGEST = 2**31
"""Bound of the settings of output lengths, against integer overflow."""


def best(scores: Float[Tensor, "R N"], count: int) -> tuple[Float[Tensor, "R K"], Int[Tensor, "R K"]]:
    """The `count` greatest scores of each row (all, if a row has fewer) and their indices, best first.

    Of equal scores, the lower index comes first, which `torch.topk` does not guarantee; this is also faster on a CPU.
    The best `count` scores are in the `count` blocks with the greatest maxima, so only these are sorted."""
    width = scores.shape[1]
    if width < 2 * count * _BLOCK:
        return _best_of_short(scores, count)
    whole = width - width % _BLOCK
    _, blocks = _best_of_short(scores[:, :whole].unflatten(1, (-1, _BLOCK)).amax(2), count)
    inside = blocks.sort(dim=1).values[:, :, None] * _BLOCK + torch.arange(_BLOCK, device=scores.device)
    rest = torch.arange(whole, width, device=scores.device).expand(len(scores), -1)
    candidates = torch.cat([inside.flatten(1), rest], 1)
    values, places = _best_of_short(scores.gather(1, candidates), count)
    return values, candidates.gather(1, places)


def _best_of_short(scores: Float[Tensor, "R N"], count: int) -> tuple[Float[Tensor, "R K"], Int[Tensor, "R K"]]:
    """`best` for short rows. Whole rows are sorted only if equal scores make the choice ambiguous, or where to ask
    that would take longer: the CPU would wait for an accelerator."""
    if scores.shape[1] > count and not is_accelerator(scores.device):
        values, places = scores.topk(count + 1, dim=1)
        if not (values[:, count - 1] == values[:, count]).any():
            places = places[:, :count].sort(dim=1).values
            values, order = scores.gather(1, places).sort(dim=1, descending=True, stable=True)
            return values, places.gather(1, order)
    values, places = scores.sort(dim=1, descending=True, stable=True)
    return values[:, :count], places[:, :count]


def writable(logits: Float[Tensor, "R N"], special: SpecialTokens) -> tuple[Float[Tensor, "R K"], int]:
    """The logits of the tokens that may be written, and the id of the first: padding and start never are,
    nor an unknown word."""
    never = special.never_written
    if never == tuple(range(len(never))):
        return logits[:, len(never) :], len(never)
    return logits.index_fill(1, torch.tensor(never, device=logits.device), -math.inf), 0


def log_probs(logits: Float[Tensor, "R N"], tokens: Int[Tensor, "R K"]) -> Float[Tensor, "R K"]:
    """The log-probabilities of some tokens of each row, in full precision."""
    rows = max(1, _CACHED // logits.shape[1])
    parts = zip(logits.split(rows), tokens.split(rows), strict=True)
    return torch.cat([part.log_softmax(1, dtype=torch.float32).gather(1, chosen) for part, chosen in parts])


def log_softmax(logits: Float[Tensor, "R N"]) -> Float[Tensor, "R N"]:
    """The log-probabilities of all tokens of each row, in full precision."""
    return logits.log_softmax(1, dtype=torch.float32)


def hypothesis(tokens: list[int], log_prob: float, score: float, ended: bool) -> Hypothesis:
    """A finished hypothesis. Raises UserError if its log-probability is NaN."""
    if math.isnan(log_prob):
        raise not_a_number(f"within {len(tokens) + 1} steps of decoding")
    return Hypothesis(tokens, log_prob, score, ended)


def not_a_number(when: str) -> NotFinite:
    """The error of a model that returns NaN."""
    return NotFinite(f"the model gave NaN {when}; its weights are damaged or diverged")


def limits(inputs: dict[str, Tensor], max_length: int | Int[Tensor, "B"]) -> Int[Tensor, "B"]:
    """The greatest number of steps of each example.

    Raises UserError if a limit is below 1 or there is not one for each example.
    """
    first = next(iter(inputs.values()))
    if not len(first):
        raise UserError("nothing to decode: the inputs have no example")
    lengths = torch.as_tensor(max_length).cpu()
    if lengths.ndim and len(lengths) != len(first):
        raise UserError(
            f"max_length has {len(lengths)} numbers for {len(first)} examples; give one for each, or one for all"
        )
    if (lengths < 1).any():
        raise UserError(f"max_length must be at least 1 (the end token is counted), not {int(lengths.min())}")
    return lengths.to(first.device).expand(len(first))
