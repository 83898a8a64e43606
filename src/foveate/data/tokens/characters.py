"""Words by their characters, so that no word is unknown to a model that reads them: what ELMo is given.

V  words    K  characters
"""

from collections.abc import Iterable, Sequence
from copy import copy
from pathlib import Path

import numpy as np

from foveate.data.ragged import Numbers
from foveate.data.tokens.tokenizers import SPACE, UNKNOWN, SubwordTokenizer

BEGIN_TEXT, END_TEXT, BEGIN_WORD, END_WORD, FILL = range(257, 262)
"""Characters that are not bytes. Byte b is the character b + 1, and 0 fills words that are padding: the numbers of the
published ELMo."""

LONGEST = 50
"""Characters of a word, BEGIN_WORD and END_WORD included. Longer words are cut."""

WIDEST = 7
"""Every word is filled up by at least this many characters, if it is not cut: no filter is wider."""


def spell(words: Iterable[str]) -> Numbers:
    """The characters of each word, (V, LONGEST): its bytes in UTF-8 between BEGIN_WORD and END_WORD."""
    return np.array([_spelling([byte + 1 for byte in word.encode()]) for word in words], np.int16).reshape(-1, LONGEST)


def _spelling(characters: Sequence[int]) -> list[int]:
    found = [BEGIN_WORD, *characters[: LONGEST - 2], END_WORD]
    return found + [FILL] * (LONGEST - len(found))


class OpenVocabulary:
    """A vocabulary of words for what is predicted, which gives any other word that is read a number of its own.

    A `foveate.contracts.Tokenizer`. The numbers from its length on are those of words that are not in it, in the order
    in which they were read; they hold for this object. What is kept has the words themselves: see `read`.
    """

    def __init__(self, tokenizer: SubwordTokenizer) -> None:
        """`tokenizer` has whole words."""
        self._tokenizer = tokenizer
        self.special, self.report = tokenizer.special, tokenizer.report
        self._numbers = tokenizer.vocabulary()
        self._words = sorted(self._numbers, key=self._numbers.__getitem__)
        self._spellings = spell(map(_bare, self._words))
        ids = self.special
        special = {ids.pad: [0] * LONGEST, ids.start: _spelling([BEGIN_TEXT]), ids.end: _spelling([END_TEXT])}
        for number, characters in special.items():
            self._spellings[number] = characters
        del self._numbers[UNKNOWN]  # the same sign in a text is a word
        self._others = dict[str, int]()

    def __len__(self) -> int:
        return len(self._tokenizer)

    def anew(self) -> "OpenVocabulary":
        """The same vocabulary, without the other words that were read."""
        other = copy(self)
        other._others = {}
        return other

    def read(self, texts: Sequence[str]) -> list[list[int | str]]:
        """The numbers of the words of each text; a word that is not in the vocabulary stays as it is."""
        return [[self._numbers.get(word, word) for word in self._tokenizer.units(text)] for text in texts]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[self._number(word) for word in row] for row in self.read(texts)]

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        words = [*self._words, *self._others]
        return ["".join(words[token] for token in row).replace(SPACE, " ").strip() for row in tokens]

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        known = self._tokenizer.pieces(self.closed(np.array(tokens, np.int64)).tolist())
        others = list(self._others)
        return [
            piece if token < len(self) else _bare(others[token - len(self)])
            for token, piece in zip(tokens, known, strict=True)
        ]

    def save(self, path: Path) -> None:
        self._tokenizer.save(path)

    def closed(self, tokens: Numbers) -> Numbers:
        """The tokens as those that can be predicted: any other is unknown."""
        return np.where(tokens < len(self), tokens, self.special.unknown)

    def opened(self, tokens: Numbers, words: Iterable[str]) -> Numbers:
        """The tokens with numbers of these words, in their order, in the place of those that are unknown."""
        found = tokens.copy()
        found[tokens == self.special.unknown] = [self._number(word) for word in words]
        return found

    def characters(self, tokens: Numbers) -> Numbers:
        """The characters of tokens (B, T), (B, T, K), without those that fill up the longest word too far."""
        found = np.concatenate([self._spellings, spell(map(_bare, self._others))])[tokens]
        longest = int(((found != FILL) & (found != 0)).sum(-1).max(initial=0))
        return found[..., : min(LONGEST, longest + WIDEST)]

    def _number(self, word: int | str) -> int:
        return word if isinstance(word, int) else self._others.setdefault(word, len(self) + len(self._others))


def _bare(word: str) -> str:
    """A word without the mark of the space before it."""
    return word.removeprefix(SPACE) or " "
