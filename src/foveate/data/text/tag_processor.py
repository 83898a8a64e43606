"""Sentences whose tokens are words become numbers of words and of their spelling, with the tags to learn or without."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from foveate.contracts import IGNORE, Batch, Tokenizer, label_batch
from foveate.data.dataset import Dataset
from foveate.data.processor import Processor
from foveate.data.ragged import Numbers, padded
from foveate.data.text.lexicon import SPELLINGS, Lexicon, load_lexicon, spelling
from foveate.data.text.tagged import Tagged
from foveate.data.tokens.bert_tokenizer import load_text_tokenizer
from foveate.special_tokens import LEARNED

LEXICON, TOKENIZER = "lexicon.json", "tokenizer.json"

NO_WORD = 0
"""The row of the table of distinct words of what is no word: padding."""


class PreparedSentence(NamedTuple):
    """A sentence as rows of a table of distinct words, four bytes a word, and its tags; the table is shared."""

    table: Numbers
    rows: Numbers
    tags: Numbers


@dataclass
class TagProcessor(Processor[Tagged]):
    """Turns tagged sentences into inputs `tokens` (B, T), which are words, `lengths` (B) and `spellings` (B, T, F), and
    labels (B, T), those of padding IGNORE."""

    lexicon: Lexicon

    def prepare(self, dataset: Dataset[Tagged]) -> list[PreparedSentence]:
        numbers = {tag: number for number, tag in enumerate(self.lexicon.tags)}
        table, rows = self._table(sentence.words for sentence in dataset)
        tags = (np.array([numbers[tag] for tag in sentence.tags], np.int32) for sentence in dataset)
        return [PreparedSentence(table, *each) for each in zip(rows, tags, strict=True)]

    def cost(self, prepared: PreparedSentence) -> int:
        return len(prepared.rows)

    def batch(self, prepared: Sequence[PreparedSentence], generator: np.random.Generator | None) -> Batch:
        labels, _ = padded([one.tags for one in prepared], IGNORE)
        return label_batch(_inputs(prepared[0].table, [one.rows for one in prepared]), labels, "sentences")

    def inputs(self, sentences: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """The inputs for sentences, each of which has a word."""
        return _inputs(*self._table(sentences))

    def positions(self, sentences: Sequence[Sequence[str]]) -> list[int]:
        """How many positions of a model each sentence takes."""
        return list(map(len, sentences))

    def _table(self, sentences: Iterable[Sequence[str]]) -> tuple[Numbers, list[Numbers]]:
        """The numbers of each distinct word, worked out once, and the rows of the words of each sentence."""
        places: defaultdict[str, int] = defaultdict(lambda: len(places) + 1)
        rows = [np.array([places[word] for word in words], np.int32) for words in sentences]
        return np.array([[LEARNED.pad, *spelling("")], *self.lexicon.rows(places)]), rows

    def sizes(self) -> Mapping[str, int]:
        return {"vocabulary": self.lexicon.vocabulary, "spellings": SPELLINGS, "classes": len(self.lexicon.tags)}

    @property
    def summary(self) -> str:
        known = f"{self.lexicon.repeated:,} words of {len(self.lexicon.words):,} known by themselves"
        return f"{known}, the others by their spelling"

    def files(self) -> dict[str, Callable[[Path], object]]:
        return {LEXICON: self.lexicon.save}

    @classmethod
    def load(cls, folder: Path) -> "TagProcessor":
        lexicon = load_lexicon(folder / LEXICON)
        if (folder / TOKENIZER).is_file():
            return PieceTagProcessor(lexicon, load_text_tokenizer(folder / TOKENIZER))
        return TagProcessor(lexicon)


class PreparedPieces(NamedTuple):
    """A sentence as pieces of words, where each word begins among them, and its tags."""

    tokens: Numbers
    places: Numbers
    tags: Numbers


@dataclass
class PieceTagProcessor(TagProcessor):
    """Turns tagged sentences into inputs `tokens` (B, T), pieces of words in the vocabulary of a language model,
    `lengths` (B) and `places` (B, W), where words begin, and labels (B, W)."""

    tokenizer: Tokenizer

    def prepare(self, dataset: Dataset[Tagged]) -> list[PreparedPieces]:  # type: ignore[override]
        numbers = {tag: number for number, tag in enumerate(self.lexicon.tags)}
        cut = self._cut(sentence.words for sentence in dataset)
        tags = (np.array([numbers[tag] for tag in sentence.tags], np.int32) for sentence in dataset)
        return [PreparedPieces(*pieces, own) for pieces, own in zip(cut, tags, strict=True)]

    def cost(self, prepared: PreparedPieces) -> int:  # type: ignore[override]
        return len(prepared.tokens)

    def batch(self, prepared: Sequence[PreparedPieces], generator: np.random.Generator | None) -> Batch:  # type: ignore[override]
        labels, _ = padded([one.tags for one in prepared], IGNORE)
        inputs = self._padded([(one.tokens, one.places) for one in prepared])
        return label_batch(inputs, labels, "sentences")

    def inputs(self, sentences: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        return self._padded(self._cut(sentences))

    def positions(self, sentences: Sequence[Sequence[str]]) -> list[int]:
        return [len(tokens) for tokens, _ in self._cut(sentences)]

    def _padded(self, cut: Sequence[tuple[Numbers, Numbers]]) -> dict[str, Tensor]:
        tokens, lengths = padded([tokens for tokens, _ in cut], self.tokenizer.special.pad)
        return {"tokens": tokens, "lengths": lengths, "places": padded([places for _, places in cut], 0)[0]}

    def _cut(self, sentences: Iterable[Sequence[str]]) -> list[tuple[Numbers, Numbers]]:
        """The pieces of each sentence, and where its words begin; each distinct word is cut once."""
        sentences = list(sentences)
        words = list({word: None for sentence in sentences for word in sentence})
        pieces = dict(zip(words, self.tokenizer.encode(words), strict=True))
        special, found = self.tokenizer.special, []
        for sentence in sentences:
            parts = [pieces[word] or [special.unknown] for word in sentence]
            ends = np.cumsum([1, *map(len, parts)])
            tokens = [special.start, *chain.from_iterable(parts), special.end]
            found.append((np.array(tokens, np.int32), ends[:-1].astype(np.int32)))
        return found

    def sizes(self) -> Mapping[str, int]:
        return {"vocabulary": len(self.tokenizer), "classes": len(self.lexicon.tags)}

    @property
    def summary(self) -> str:
        return f"{len(self.tokenizer):,} pieces of words, {len(self.lexicon.tags)} tags"

    def files(self) -> dict[str, Callable[[Path], object]]:
        return {**super().files(), TOKENIZER: self.tokenizer.save}


def _inputs(table: Numbers, rows: Sequence[Numbers]) -> dict[str, Tensor]:
    places, lengths = padded(rows, NO_WORD)
    found = torch.from_numpy(table)[places]
    return {"tokens": found[..., 0], "lengths": lengths, "spellings": found[..., 1:]}
