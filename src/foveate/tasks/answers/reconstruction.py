"""The two ways in which auto-encoders read and write: a sentence at once, or a paragraph sentence by sentence."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from foveate.contracts import Batch
from foveate.data import (
    Passage,
    Prose,
    encode_sentences,
    paragraph_batches,
    source_batches,
)
from foveate.data.ragged import padded, tokenised
from foveate.data.text.prose_batches import ParagraphProcessor, SentenceProcessor
from foveate.decoding import Decoding, decode

PASSAGE_WORDS = 40
"""Words of a hierarchical model's passages, where the user does not say."""

MORE_SENTENCES = 2
"""A paragraph that is written may have so many sentences more than the one that was read."""

Inputs = dict[str, Tensor]


@runtime_checkable
class Rewriting(Protocol):
    """How a model reads passages, and writes them again."""

    @staticmethod
    def passages(prose: Prose, words: int | None) -> Iterator[Passage]:
        """What of the prose is read into one vector each."""

    def lengths(self, passages: Sequence[Passage]) -> list[int]:
        """How many tokens of each passage the model reads in a row, at most."""

    def encode(self, passages: Iterable[Passage], most: float = math.inf) -> Sequence[Any]:
        """The passages to learn from, without those that have more tokens in a row."""

    def batch(self, prepared: Sequence[Any], generator: np.random.Generator | None) -> Batch:
        """A batch of encoded passages."""

    def read(self, passages: Sequence[Passage], tokens: int) -> Iterator[tuple[list[int], Inputs]]:
        """The places of passages in batches of like length, and what the model reads of them."""

    def write(
        self, model: Any, inputs: Inputs, decoding: Decoding, generator: torch.Generator | None = None
    ) -> list[list[list[int]]]:
        """The token ids of each sentence of what the model writes again; the `generator` makes random draws repeat."""


class SentenceRewriting(SentenceProcessor):
    """A passage is one sequence, whatever its sentences."""

    @staticmethod
    def passages(prose: Prose, words: int | None) -> Iterator[Passage]:
        return prose.sentences() if words is None else prose.whole_passages(words)

    def lengths(self, passages: Sequence[Passage]) -> list[int]:
        rows, _, _ = tokenised(((passage.text, None) for passage in passages), self.tokenizer, (), ())
        return rows.lengths.tolist()

    def read(self, passages: Sequence[Passage], tokens: int) -> Iterator[tuple[list[int], Inputs]]:
        special = self.tokenizer.special
        return source_batches(self.tokenizer.encode([passage.text for passage in passages]), special, tokens)

    def write(
        self, model: Any, inputs: Inputs, decoding: Decoding, generator: torch.Generator | None = None
    ) -> list[list[list[int]]]:
        found = decode(model, inputs, self.tokenizer.special, inputs["source_lengths"], decoding, generator)
        return [[best.tokens] for best, *_ in found]


class ParagraphRewriting(ParagraphProcessor):
    """A passage is a paragraph; each of its sentences is searched for before the next one is begun."""

    @staticmethod
    def passages(prose: Prose, words: int | None) -> Iterator[Passage]:
        return prose.whole_passages(PASSAGE_WORDS if words is None else words)

    def lengths(self, passages: Sequence[Passage]) -> list[int]:
        return [max(map(len, sentences), default=0) for sentences in encode_sentences(passages, self.tokenizer)]

    def read(self, passages: Sequence[Passage], tokens: int) -> Iterator[tuple[list[int], Inputs]]:
        return paragraph_batches(encode_sentences(passages, self.tokenizer), self.tokenizer.special, tokens)

    def write(
        self, model: Any, inputs: Inputs, decoding: Decoding, generator: torch.Generator | None = None
    ) -> list[list[list[int]]]:
        special, state = self.tokenizer.special, model.start(**inputs)
        longest = inputs["source_lengths"][inputs["paragraphs"]].amax(1)
        rows = torch.arange(len(longest), device=longest.device)
        before = torch.zeros_like(state.hidden[0][-1])
        written: list[list[list[int]]] = [[] for _ in rows]
        for _ in range(inputs["paragraphs"].shape[1] + MORE_SENTENCES):
            vectors = model.plan(before, state)
            found = decode(model.writer, {"vectors": vectors}, special, longest, decoding, generator)
            sentences = [best.tokens for best, *_ in found]
            stay = [place for place, sentence in enumerate(sentences) if sentence]
            if not stay:  # an empty sentence ends its paragraph
                break
            for place in stay:
                written[int(rows[place])].append(sentences[place])
            ended = [np.array([*sentences[place], special.end]) for place in stay]
            source, lengths = padded(ended, special.pad)
            before = model.reader(source.to(rows.device), lengths.to(rows.device))
            kept = torch.tensor(stay, device=rows.device)
            state.reorder(kept)
            rows, longest = rows[kept], longest[kept]
        return written


REWRITINGS: dict[str, Any] = {"rnn-autoencoder": SentenceRewriting, "hierarchical-autoencoder": ParagraphRewriting}
"""By the family of the model."""
