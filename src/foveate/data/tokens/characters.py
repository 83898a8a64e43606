"""Words by their characters, so that no word is unknown to a model that reads them: what ELMo is given.

V  words    K  characters
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from foveate.data.ragged import Numbers
from foveate.data.tokens.tokenizers import SPACE, SubwordTokenizer

BEGIN_TEXT, END_TEXT, BEGIN_WORD, END_WORD, FILL = range(257, 262)
"""Characters that are no bytes. Byte b is the character b + 1, and 0 fills words that are padding: the numbers of the
published ELMo."""

LONGEST = 50
"""Characters of a word, BEGIN_WORD and END_WORD included. Longer words are cut."""

WIDEST = 7
"""Every word is filled up by at least so many characters, if it is not cut: no filter is wider."""


def spell(words: Iterable[str]) -> Numbers:
    """The characters of each word, (V, LONGEST): its bytes in UTF-8 between BEGIN_WORD and END_WORD."""
    return np.array([_spelling([byte + 1 for byte in word.encode()]) for word in words], np.int16).reshape(-1, LONGEST)


def _spelling(characters: Sequence[int]) -> list[int]:
    found = [BEGIN_WORD, *characters[: LONGEST - 2], END_WORD]
    return found + [FILL] * (LONGEST - len(found))


class OpenVocabulary:
    """A vocabulary of words for what is predicted, which gives any other word that is read a number of its own.

    A `foveate.contracts.Tokenizer`. The numbers from its length on are those of words that are not in it, in the order
    in which they were read; they hold for one process.
    """

    def __init__(self, tokenizer: SubwordTokenizer) -> None:
        """`tokenizer` has whole words."""
        self._tokenizer = tokenizer
        self.special = tokenizer.special
        self._numbers = tokenizer.vocabulary()
        words = sorted(self._numbers, key=self._numbers.__getitem__)
        self._words = words
        self._spellings = spell(map(_bare, words))
        ids = self.special
        special = {ids.pad: [0] * LONGEST, ids.start: _spelling([BEGIN_TEXT]), ids.end: _spelling([END_TEXT])}
        for number, characters in special.items():
            self._spellings[number] = characters

    def __len__(self) -> int:
        return len(self._tokenizer)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[self._number(word) for word in self._tokenizer.units(text)] for text in texts]

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        return ["".join(self._words[token] for token in row).replace(SPACE, " ").strip() for row in tokens]

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        known = self._tokenizer.pieces(self.closed(np.array(tokens, np.int64)).tolist())
        return [
            piece if token < len(self) else _bare(self._words[token])
            for token, piece in zip(tokens, known, strict=True)
        ]

    def save(self, path: Path) -> None:
        self._tokenizer.save(path)

    def closed(self, tokens: Numbers) -> Numbers:
        """The tokens as those that can be predicted: any other is unknown."""
        return np.where(tokens < len(self), tokens, self.special.unknown)

    def characters(self, tokens: Numbers) -> Numbers:
        """The characters of tokens (B, T), (B, T, K), without those that fill up the longest word too far."""
        if len(self._spellings) < len(self._words):
            new = spell(map(_bare, self._words[len(self._spellings) :]))
            self._spellings = np.concatenate([self._spellings, new])
        found = self._spellings[tokens]
        longest = int(((found != FILL) & (found != 0)).sum(-1).max(initial=0))
        return found[..., : min(LONGEST, longest + WIDEST)]

    def _number(self, word: str) -> int:
        number = self._numbers.get(word)
        if number is None:
            number = self._numbers[word] = len(self._words)
            self._words.append(word)
        return number


def _bare(word: str) -> str:
    """A word without the mark of the space before it."""
    return word.removeprefix(SPACE) or " "
