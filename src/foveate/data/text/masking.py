"""What is hidden of a text, and asked for, when a model learns to fill in words.

B  rows    T  tokens of a row    M  places that are asked for
"""

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from torch import Tensor

from foveate.contracts import IGNORE, Batch, Tokenizer, label_batch
from foveate.data.ragged import Numbers, padded
from foveate.data.text.scripts import in_word
from foveate.data.tokens.tokenizers import MASK
from foveate.special_tokens import SpecialTokens

SEPARATOR = "[SEP]"
"""What users write between two texts."""


@runtime_checkable
class Hiding(Protocol):
    """The way in which a family of models learns to fill in words. A row of tokens begins with the start token."""

    def hide(self, rows: Sequence[Numbers], generator: np.random.Generator | None) -> Batch:
        """A batch to learn from, with inputs for the model and the hidden tokens as labels.

        Without a generator, what is hidden depends on the row alone: to measure on.
        """

    def ask(self, rows: Sequence[Numbers], places: Sequence[Numbers]) -> dict[str, Tensor]:
        """The inputs for which a model gives the logits (B, M, N) of the tokens at these places, where masks stand."""

    def predicted(self, row: Numbers) -> Numbers:
        """The places of a row that are predicted when a model is measured."""


@dataclass(frozen=True)
class Masked:
    """A share of the tokens is hidden (Devlin et al. 2019, section 3.1): of these 80 % become masks, 10 % another
    token and 10 % stay as they are. To measure, all become masks.

    inputs: `tokens` (B, T), `lengths` (B,), `places` (B, M). labels (B, M): the tokens that were hidden there.
    """

    special: SpecialTokens
    vocabulary: int
    share: float = 0.15

    masked: ClassVar[float] = 0.8
    other: ClassVar[float] = 0.1

    def hide(self, rows: Sequence[Numbers], generator: np.random.Generator | None) -> Batch:
        drawn = [hidden_places(row, self.share, generator, self.special) for row in rows]
        given = [self._corrupt(row, places, generator) for row, places in zip(rows, drawn, strict=True)]
        labels, _ = padded([row[places] for row, places in zip(rows, drawn, strict=True)], IGNORE)
        return label_batch(self.ask(given, drawn), labels, "")

    def ask(self, rows: Sequence[Numbers], places: Sequence[Numbers]) -> dict[str, Tensor]:
        tokens, lengths = padded(rows, self.special.pad)
        return {"tokens": tokens, "lengths": lengths, "places": padded(places, 0)[0]}

    def predicted(self, row: Numbers) -> Numbers:
        return hidden_places(row, self.share, None, self.special)

    def _corrupt(self, row: Numbers, places: Numbers, generator: np.random.Generator | None) -> Numbers:
        row = row.copy()
        if generator is None:
            row[places] = self.special.mask
            return row
        dice = generator.random(len(places))
        row[places[dice < self.masked]] = self.special.mask
        changed = places[(dice >= self.masked) & (dice < self.masked + self.other)]
        others = self.special.others(self.vocabulary)
        row[changed] = others[generator.integers(len(others), size=len(changed))]
        return row


def hidden_places(row: Numbers, share: float, generator: np.random.Generator | None, special: SpecialTokens) -> Numbers:
    """Places of a share of the words of a row, at least one of them, in their order; special tokens are not words."""
    generator = generator or np.random.default_rng(zlib.crc32(row.tobytes()))
    words = np.flatnonzero(~np.isin(row, [*special.ids.values()]))
    if not len(words):
        return words
    count = max(1, round(share * len(words)))
    return np.sort(generator.choice(words, count, replace=False))


_SIGNS = re.compile(r"(\[MASK\]|\[SEP\])")


def encode_question(text: str, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The tokens of a text between start and end, with a mask for each [MASK] and a separator for each [SEP]; where
    masks stand."""
    special = tokenizer.special
    tokens, places, before = [special.start], [], ""
    for part in _SIGNS.split(text):
        if part == MASK:
            places.append(len(tokens))
            tokens.append(special.mask)
        elif part == SEPARATOR:
            tokens.append(special.separator)
        elif part.strip():
            tokens += _continued(part, tokenizer) if before == MASK else tokenizer.encode([part])[0]
        before = part
    return [*tokens, special.end], places


def _continued(part: str, tokenizer: Tokenizer) -> list[int]:
    """The tokens of what follows a word: punctuation right after it is not the beginning of a word."""
    if part[0].isspace() or in_word(part[0]):
        return tokenizer.encode([part])[0]
    letter, whole = tokenizer.encode(["a", f"a{part}"])
    return whole[len(letter) :]
