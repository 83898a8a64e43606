"""Running prose as rows of tokens of one length, so that a batch has next to no padding."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby, islice

import numpy as np

from foveate.contracts import Tokenizer
from foveate.data.dataset import Dataset
from foveate.data.text.documents import Passage
from foveate.special_tokens import SpecialTokens

PIECE = 5_000
"""Passages that are tokenised together."""


@dataclass(frozen=True)
class TokenRow:
    """Consecutive tokens of one document, after the start token."""

    place: str
    """Where the first of them stands."""
    tokens: np.ndarray = field(repr=False)

    def content(self) -> bytes:
        return self.tokens.tobytes()


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


def split_passage(passage: Passage, tokens: list[int], special: SpecialTokens, length: int) -> list[TokenRow]:
    """One passage with its end token as rows, whatever comes before and after it."""
    return list(_rows_of_document([(passage, tokens)], special, length - 1))


def _tokenized(passages: Iterable[Passage], tokenizer: Tokenizer) -> Iterator[tuple[Passage, list[int]]]:
    passages = iter(passages)
    while piece := list(islice(passages, PIECE)):
        yield from zip(piece, tokenizer.encode([passage.text for passage in piece]), strict=True)


def _rows_of_document(
    parts: Iterable[tuple[Passage, list[int]]], special: SpecialTokens, length: int
) -> Iterator[TokenRow]:
    tokens: list[int] = []
    places: list[str] = []
    for paragraph, group in groupby(parts, lambda part: part[0].place):
        for own in chain((own for _, own in group), [[special.end]]):
            places += [paragraph] * len(own)
            tokens += own
            while len(tokens) >= length:
                yield TokenRow(places[0], np.array([special.start, *tokens[:length]], np.int32))
                del tokens[:length], places[:length]
    if tokens:
        yield TokenRow(places[0], np.array([special.start, *tokens], np.int32))
