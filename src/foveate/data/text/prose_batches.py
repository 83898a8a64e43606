"""Batches of prose to learn to write again: passages as one sequence, and paragraphs, sentence by sentence."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch

from foveate.contracts import IGNORE, Batch, Tokenizer
from foveate.data.ragged import Numbers, in_pieces, packed, padded
from foveate.data.text.conversations import encode_conversations
from foveate.data.text.documents import Passage
from foveate.special_tokens import SpecialTokens


class PassageTokens(NamedTuple):
    """A passage as numbers, between start and end, and the number of its condition; 0 for none."""

    tokens: Numbers
    """Those of a conversation that are read and not learned are `~id`, below zero."""
    condition: int
    place: str

    def content(self) -> bytes:
        """All that is learned from it."""
        return self.tokens.tobytes() + self.condition.to_bytes(4, "little")


class PackedTokens(NamedTuple):
    """Passages that stand one behind the other in a row."""

    passages: tuple[PassageTokens, ...]

    @property
    def place(self) -> str:
        """That of the first, which is the longest."""
        return self.passages[0].place

    def content(self) -> bytes:
        """All that is learned from them."""
        return b"".join(passage.content() for passage in self.passages)


class PackedPassages(Sequence[PackedTokens]):
    """Passages in rows in which at most `most` tokens are read."""

    def __init__(self, passages: Sequence[PassageTokens], most: int) -> None:
        self._passages = passages
        self._rows = packed(np.array([len(one.tokens) - 1 for one in passages]), most)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: int) -> PackedTokens:  # type: ignore[override]  # no slices
        return PackedTokens(tuple(self._passages[place] for place in self._rows[row].tolist()))


def encode_passages(
    passages: Iterable[Passage],
    tokenizer: Tokenizer,
    most: float = math.inf,
    conditions: Mapping[str, int] = MappingProxyType({}),
) -> list[PassageTokens]:
    """The passages of at most `most` tokens. They are read once, in pieces."""
    return list(stream_passages(passages, tokenizer, most, conditions))


def stream_passages(
    passages: Iterable[Passage],
    tokenizer: Tokenizer,
    most: float = math.inf,
    conditions: Mapping[str, int] = MappingProxyType({}),
) -> Iterator[PassageTokens]:
    """The same one after the other; a piece of them is in memory."""
    special = tokenizer.special
    for piece in in_pieces(passages):
        if piece[0].messages:
            encoded = encode_conversations((passage.conversation for passage in piece), tokenizer)
            rows = zip(piece, encoded, strict=True)
            yield from (PassageTokens(row, 0, passage.place) for passage, row in rows if len(row) <= most)
            continue
        found = tokenizer.encode([passage.text for passage in piece])
        for passage, tokens in zip(piece, found, strict=True):
            if len(tokens) <= most:
                row = np.array([special.start, *tokens, special.end], np.int32)
                yield PassageTokens(row, conditions.get(passage.condition, 0), passage.place)


@dataclass
class ParagraphBatch(Batch):
    """A batch whose examples are paragraphs, and whose rows are their sentences."""

    @property
    def examples(self) -> int:
        return len(self.inputs["paragraphs"])

    def select(self, chosen: slice) -> "ParagraphBatch":
        """Some of the paragraphs alone, with their sentences."""
        numbers, lengths = (self.inputs[name][chosen] for name in ("paragraphs", "paragraph_lengths"))
        places = torch.arange(numbers.shape[1])
        real = places < lengths[:, None]
        sentences, ends = numbers[real], lengths.cumsum(0)[:, None]
        inputs = {name: self.inputs[name][sentences] for name in ("source", "source_lengths", "target")}
        inputs["paragraphs"] = torch.where(real, ends - lengths[:, None] + places, 0)
        inputs["paragraph_lengths"] = lengths
        return ParagraphBatch(inputs, {"labels": self.labels[sentences]}, self.weight[sentences], self.source)


def encode_sentences(passages: Sequence[Passage], tokenizer: Tokenizer) -> list[list[list[int]]]:
    """The token ids of each sentence of each passage."""
    found = iter(tokenizer.encode([sentence for passage in passages for sentence in passage.sentences]))
    return [list(islice(found, len(passage.sentences))) for passage in passages]


def paragraph_inputs(paragraphs: Sequence[Sequence[Sequence[int]]], special: SpecialTokens) -> dict[str, torch.Tensor]:
    """Makes the inputs of a hierarchical auto-encoder of paragraphs of sentences of token ids, the empty last ones
    included.

    `source` (P, S), the sentences one below the other, each with an end token, padded; `source_lengths` (P,);
    `paragraphs` (B, K), the rows of each paragraph's sentences, filled up with 0; `paragraph_lengths` (B,).
    """
    rows = [np.array([*sentence, special.end]) for paragraph in paragraphs for sentence in paragraph]
    source, source_lengths = padded(rows, special.pad)
    ends = np.cumsum([len(paragraph) for paragraph in paragraphs])
    places = [np.arange(end - len(paragraph), end) for paragraph, end in zip(paragraphs, ends, strict=True)]
    numbers, lengths = padded(places, 0)
    return {"source": source, "source_lengths": source_lengths, "paragraphs": numbers, "paragraph_lengths": lengths}


def to_write(rows: Sequence[Numbers], special: SpecialTokens) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Inputs and labels to learn to write sequences from start to end."""
    target, lengths = padded([row[:-1] for row in rows], special.pad)
    labels, _ = padded([row[1:] for row in rows], IGNORE)
    return {"target": target, "target_lengths": lengths}, labels
