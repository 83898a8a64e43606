"""Characters as tokens: their ids follow the special ones."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from foveate.contracts import IGNORE
from foveate.special_tokens import LEARNED, SpecialTokens

SPECIAL = LEARNED.first_word
"""The number of token ids before those of characters."""


def find_characters(texts: Iterable[str]) -> str:
    """All characters of the texts, the most frequent first."""
    counts = Counter(character for text in texts for character in text)
    return "".join(sorted(counts, key=lambda character: (-counts[character], character)))


def encode(text: str, characters: str) -> list[int]:
    """The token ids of a text; a character that is not known is the unknown token."""
    places = {character: place for place, character in enumerate(characters, SPECIAL)}
    return [places.get(character, LEARNED.unknown) for character in text]


def decode(tokens: Sequence[int], characters: str) -> str:
    """The text of token ids; what is not known is '⁇'."""
    return "".join(characters[token - SPECIAL] if token >= SPECIAL else "⁇" for token in tokens)


@dataclass(frozen=True)
class CharacterTokenizer:
    """Characters as a `foveate.contracts.Tokenizer`."""

    characters: str
    """The characters that are known; token ids are their places, after the special ones."""
    special: ClassVar[SpecialTokens] = LEARNED

    def __len__(self) -> int:
        return SPECIAL + len(self.characters)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of texts; a character that is not known is the unknown token."""
        places = {character: place for place, character in enumerate(self.characters, SPECIAL)}
        return [[places.get(character, LEARNED.unknown) for character in text] for text in texts]

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """The texts of token ids; what is not known is '⁇'."""
        return [decode(own, self.characters) for own in tokens]

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """The character of each token."""
        return list(decode(tokens, self.characters))

    def save(self, path: Path) -> None:
        """Write the characters."""
        path.write_text(self.characters, encoding="utf-8")


def teacher_forcing(texts: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
    """Returns the inputs of a decoder, the start token and the tokens, and its labels, the tokens and the end token."""
    longest = max(map(len, texts)) + 1
    target, labels = torch.full((len(texts), longest), LEARNED.pad), torch.full((len(texts), longest), IGNORE)
    for row, tokens in enumerate(texts):
        target[row, : len(tokens) + 1] = torch.tensor([LEARNED.start, *tokens])
        labels[row, : len(tokens) + 1] = torch.tensor([*tokens, LEARNED.end])
    return target, labels
