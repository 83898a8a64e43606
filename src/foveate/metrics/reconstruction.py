"""How faithfully texts are written again."""

from collections.abc import Sequence
from dataclasses import dataclass

from foveate.contracts import Tokenizer
from foveate.metrics.translation import quality


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
    tokens = tokenizer.encode(list(texts))
    places = [sum(map(int.__eq__, one, other)) for one, other in zip(found, tokens, strict=True)]
    whole = sum(list(one) == other for one, other in zip(found, tokens, strict=True))
    return Fidelity(
        tokens=100 * sum(places) / max(1, sum(map(len, tokens))),
        whole=100 * whole / len(texts),
        bleu=quality(tokenizer.decode(found), tokenizer.decode(tokens)).bleu,
    )
