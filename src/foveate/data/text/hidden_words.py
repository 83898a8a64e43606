"""Texts become rows of tokens, some of which are hidden."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foveate.contracts import Batch, Tokenizer
from foveate.data.batching import Batching
from foveate.data.dataset import Dataset
from foveate.data.ragged import Numbers
from foveate.data.text.documents import Passage
from foveate.data.text.masking import Hiding, Masked
from foveate.data.text.neighbours import BothWays
from foveate.data.text.packing import TokenRow, stream_rows
from foveate.data.text.permutation import Permuted
from foveate.data.text.token_shards import Row, keep_rows, rows_key
from foveate.data.tokens.characters import OpenVocabulary
from foveate.data.tokens.tokenizers import SubwordTokenizer

HIDING: dict[str, Callable[[Any, float], Hiding]] = {
    "masked": lambda tokenizer, share: Masked(tokenizer.special, len(tokenizer), share),
    "permuted": lambda tokenizer, share: Permuted(tokenizer.special, share),
    "both ways": lambda tokenizer, share: BothWays(tokenizer),
}
"""The ways to hide words, by name; each is made from the tokenizer and the share that is hidden."""

OF_CHARACTERS = ("both ways",)
"""Those of models that read words by their characters; the vocabulary is of whole words."""


def open_words(tokenizer: Any, hiding: str) -> Any:
    """The tokenizer, which for a model that reads words by their characters knows any word."""
    of_words = hiding in OF_CHARACTERS and isinstance(tokenizer, SubwordTokenizer)
    return OpenVocabulary(tokenizer) if of_words else tokenizer


@dataclass
class HiddenWords(Batching[TokenRow]):
    """Makes batches of rows in which tokens are hidden."""

    tokenizer: Tokenizer
    hiding: str
    """A name of `HIDING`."""
    share: float = 0.15
    """Share of the words that are hidden."""

    @property
    def way(self) -> Hiding:
        """How words are hidden."""
        return HIDING[self.hiding](self.tokenizer, self.share)

    def keep(self, passages: Dataset[Passage], watched: Iterable[Passage], length: int) -> Dataset[TokenRow]:
        """The passages, read from `watched`, packed into rows of `length` tokens: of a large text in files of
        the cache, which a later training on the same text finds there."""
        rows = keep_rows(
            lambda: map(_to_keep, stream_rows(watched, self.tokenizer, length)),
            _cut_row,
            rows_key(passages, self.tokenizer, length, *(["words"] if self.hiding in OF_CHARACTERS else [])),
        )
        return Dataset(passages.name, rows, "rows")

    def cost(self, prepared: TokenRow) -> int:
        return len(prepared.tokens)

    def batch(self, prepared: Sequence[TokenRow], generator: np.random.Generator | None) -> Batch:
        if not isinstance(self.tokenizer, OpenVocabulary):
            return self.way.hide([row.tokens for row in prepared], generator)
        words = self.tokenizer.anew()  # numbers for the words of this batch, which another thread may not need
        way = HIDING[self.hiding](words, self.share)
        return way.hide([words.opened(row.tokens, row.words) for row in prepared], generator)


def _to_keep(row: TokenRow) -> Row:
    """A row for a file: with its unknown words before its place."""
    return row.tokens, len(row.words), "\n".join([*row.words, row.place])


def _cut_row(tokens: Numbers, words: int, text: str) -> TokenRow:
    *unknown, place = text.split("\n", words)
    return TokenRow(place, tokens, tuple(unknown))
