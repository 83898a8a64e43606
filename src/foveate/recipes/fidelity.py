"""How faithfully texts are written again."""

from collections.abc import Sequence
from dataclasses import dataclass

from foveate.contracts import Tokenizer
from foveate.recipes.quality import quality


@dataclass(frozen=True)
class Fidelity:
    """How much of some texts was written again, each figure from 0 to 100."""

    tokens: float
    """Share of tokens that are in the same place again."""
    whole: float
    """Share of texts of which every token is."""
    bleu: float


def fidelity(found: Sequence[str], texts: Sequence[str], tokenizer: Tokenizer) -> Fidelity:
    """How much of the texts is in what was found for them."""
    again, tokens = tokenizer.encode(list(found)), tokenizer.encode(list(texts))
    places = [sum(map(int.__eq__, one, other)) for one, other in zip(again, tokens, strict=True)]
    whole = sum(one == other for one, other in zip(again, tokens, strict=True))
    return Fidelity(
        100 * sum(places) / max(1, sum(map(len, tokens))), 100 * whole / len(texts), quality(found, texts).bleu
    )
