"""Sentences whose tokens are words become numbers of words and of their spelling, with the tags to learn or without."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from foveate.contracts import IGNORE, PAD, Batch, label_batch
from foveate.data.dataset import Dataset
from foveate.data.lexicon import SPELLINGS, Lexicon, load_lexicon, spelling
from foveate.data.processor import Processor
from foveate.data.rows import Numbers, padded
from foveate.data.tagged import Tagged

LEXICON = "lexicon.json"

NO_WORD = 0
"""The row of the table of distinct words of what is no word: padding."""


class PreparedSentence(NamedTuple):
    """A sentence as rows of a table of distinct words, four bytes a word, and its tags; the table is shared."""

    table: Numbers
    rows: Numbers
    tags: Numbers


@dataclass
class TagProcessor(Processor[Tagged]):
    """Turns tagged sentences into inputs `words` (B, T), `spellings` (B, T, F) and `lengths` (B), and labels (B, T),
    those of padding IGNORE."""

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

    def _table(self, sentences: Iterable[Sequence[str]]) -> tuple[Numbers, list[Numbers]]:
        """The numbers of each distinct word, worked out once, and the rows of the words of each sentence."""
        places: defaultdict[str, int] = defaultdict(lambda: len(places) + 1)
        rows = [np.array([places[word] for word in words], np.int32) for words in sentences]
        return np.array([[PAD, *spelling("")], *self.lexicon.rows(places)]), rows

    def sizes(self) -> Mapping[str, int]:
        return {"vocabulary": self.lexicon.vocabulary, "spellings": SPELLINGS, "tags": len(self.lexicon.tags)}

    @property
    def summary(self) -> str:
        known = f"{self.lexicon.repeated:,} words of {len(self.lexicon.words):,} known by themselves"
        return f"{known}, the others by their spelling"

    def files(self) -> dict[str, Callable[[Path], object]]:
        return {LEXICON: self.lexicon.save}

    @classmethod
    def load(cls, folder: Path) -> "TagProcessor":
        return cls(load_lexicon(folder / LEXICON))


def _inputs(table: Numbers, rows: Sequence[Numbers]) -> dict[str, Tensor]:
    places, lengths = padded(rows, NO_WORD)
    found = torch.from_numpy(table)[places]
    return {"words": found[..., 0], "spellings": found[..., 1:], "lengths": lengths}
