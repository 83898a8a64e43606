"""How faithfully texts are written again."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foveate.contracts import Tokenizer
from foveate.metrics.resampling import Measured
from foveate.metrics.translation import ResampledQuality


@dataclass(frozen=True)
class Fidelity:
    """The shares of some texts that were written again, each figure from 0 to 100."""

    tokens: float
    """Share of tokens that are in the same place again."""
    whole: float
    """Share of texts of which every token is."""
    bleu: float


def fidelity(found: Sequence[Sequence[int]], texts: Sequence[str], tokenizer: Tokenizer) -> Fidelity:
    """Measures how much of the texts is in the token ids that were found for them, as the tokenizer reads and writes
    texts."""
    return Fidelity(**measured_fidelity(found, texts, tokenizer).all())


def measured_fidelity(found: Sequence[Sequence[int]], texts: Sequence[str], tokenizer: Tokenizer) -> Measured:
    """The figures of `Fidelity` for any of the texts, whose tokens are counted once."""
    tokens = tokenizer.encode(list(texts))
    pairs = [*zip(found, tokens, strict=True)]
    right = np.array([sum(map(int.__eq__, one, other)) for one, other in pairs])
    whole = np.array([list(one) == other for one, other in pairs])
    lengths = np.array([*map(len, tokens)])
    words = ResampledQuality(tokenizer.decode(found), tokenizer.decode(tokens))

    def figures(rows: Sequence[int]) -> dict[str, float]:
        chosen = [*rows]
        return {
            "tokens": 100 * float(right[chosen].sum()) / max(1, int(lengths[chosen].sum())),
            "whole": 100 * float(whole[chosen].mean()),
            "bleu": words(chosen)["bleu"],
        }

    return Measured(len(tokens), figures)
