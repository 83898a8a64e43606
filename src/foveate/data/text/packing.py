"""Running prose as rows of tokens of one length, so that a batch has next to no padding."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from typing import Any

import numpy as np

from foveate.contracts import Tokenizer
from foveate.data.dataset import Dataset
from foveate.data.text.documents import Passage
from foveate.data.tokens.characters import OpenVocabulary
from foveate.special_tokens import SpecialTokens

PIECE = 5_000
"""Passages that are tokenised together."""


@dataclass(frozen=True)
class TokenRow:
    """Consecutive tokens of one document, after the start token."""

    place: str
    """Where the first of them stands."""
    tokens: np.ndarray = field(repr=False)
    words: tuple[str, ...] = ()
    """The unknown words, in their order, where the tokenizer is an `OpenVocabulary`."""

    def content(self) -> bytes:
        return b"\0".join([self.tokens.tobytes(), *(word.encode() for word in self.words)])


def pack(passages: Dataset[Passage], tokenizer: Tokenizer, length: int) -> Dataset[TokenRow]:
    """Rows of `length` tokens, the start token included; only the last row of a document is shorter.

    A row has tokens of one document alone, so that no document is read in the light of another. An end token stands
    after each paragraph.
    """
    return Dataset(passages.name, list(stream_rows(passages, tokenizer, length)), "rows")


def stream_rows(passages: Iterable[Passage], tokenizer: Tokenizer, length: int) -> Iterator[TokenRow]:
    """The same one after the other; a document need not fit into memory."""
    for _, group in groupby(_tokenized(passages, tokenizer), lambda pair: pair[0].document):
        yield from _rows_of_document(group, tokenizer.special, length - 1)


def rows_of_each(passages: Iterable[Passage], tokenizer: Tokenizer, length: int) -> Iterator[TokenRow]:
    """Each passage with its end token as rows, whatever comes before and after it."""
    for pair in _tokenized(passages, tokenizer):
        yield from _rows_of_document([pair], tokenizer.special, length - 1)


Tokens = list[int | str]
"""Tokens, and the words that are unknown."""


def _tokenized(passages: Iterable[Passage], tokenizer: Tokenizer) -> Iterator[tuple[Passage, Tokens]]:
    encode: Any = tokenizer.read if isinstance(tokenizer, OpenVocabulary) else tokenizer.encode
    passages = iter(passages)
    while piece := list(islice(passages, PIECE)):
        yield from zip(piece, encode([passage.text for passage in piece]), strict=True)


def _rows_of_document(
    parts: Iterable[tuple[Passage, Tokens]], special: SpecialTokens, length: int
) -> Iterator[TokenRow]:
    tokens: Tokens = []
    places: list[str] = []
    for paragraph, group in groupby(parts, lambda part: part[0].place):
        end: Tokens = [special.end]
        for own in chain((own for _, own in group), [end]):
            places += [paragraph] * len(own)
            tokens += own
            while len(tokens) >= length:
                yield _row(places[0], tokens[:length], special)
                del tokens[:length], places[:length]
    if tokens:
        yield _row(places[0], tokens, special)


def _row(place: str, tokens: Tokens, special: SpecialTokens) -> TokenRow:
    words = tuple(token for token in tokens if isinstance(token, str))
    known = [special.unknown if isinstance(token, str) else token for token in tokens] if words else tokens
    return TokenRow(place, np.array([special.start, *known], np.int32), words)
