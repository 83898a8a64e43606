"""Batches of sentences whose tokens are words, with their tags to learn from or without."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from foveate.contracts import IGNORE, PAD, Batch, label_batch
from foveate.data.lexicon import Lexicon, spelling
from foveate.data.rows import Numbers, Rows, line_names, padded, within_budget
from foveate.data.shuffled_batches import ShuffledBatches
from foveate.data.tagged import TaggedText
from foveate.errors import UserError, at_least

NO_WORD = 0
"""The place in the table of distinct words of what is no word: padding."""


class Sentences:
    """Sentences as places in a table of their distinct words: four bytes a word, each spelling worked out once."""

    def __init__(self, sentences: Iterable[Sequence[str]], lexicon: Lexicon) -> None:
        places: defaultdict[str, int] = defaultdict(lambda: len(places) + 1)
        self.rows = Rows([[places[word] for word in words] for words in sentences])
        self._table = np.array([[PAD, *spelling("")], *lexicon.rows(places)])

    def inputs(self, rows: Numbers) -> dict[str, Tensor]:
        """What a model reads: `words` (B, T), `spellings` (B, T, F) and `lengths` (B,)."""
        places, lengths = padded(self.rows.take(rows), NO_WORD)
        found = torch.from_numpy(self._table)[places]
        return {"words": found[..., 0], "spellings": found[..., 1:], "lengths": lengths}


class TaggedBatches(ShuffledBatches):
    """Batches to train a tagger on; the text is kept in memory as numbers, eight bytes a word.

    inputs as of `Sentences`, labels (B, T) then IGNORE.

    Sentences of more than `max_length` words are left out, counted, and told by `report`. Raises UserError when none
    is left.
    """

    def __init__(self, text: TaggedText, lexicon: Lexicon, tokens: int, max_length: int, seed: int) -> None:
        """`tokens` is the budget: the most places of a batch, padding included."""
        at_least(max_length, "the budget of a batch in tokens", tokens)
        self._text, self._max_length = text, max_length
        numbers = {tag: number for number, tag in enumerate(lexicon.tags)}
        lines: list[int] = []
        tags: list[list[int]] = []

        def words() -> Iterator[Sequence[str]]:
            for sentence in text:
                if len(sentence.words) <= max_length:
                    lines.append(sentence.line)
                    tags.append([numbers[tag] for tag in sentence.tags])
                    yield sentence.words

        self._sentences = Sentences(words(), lexicon)
        super().__init__(self._sentences.rows.lengths, tokens, seed)
        self._tags, self._lines = Rows(tags), np.array(lines)
        if not lines:
            raise UserError(
                f"{text.name}: each sentence has more than {max_length:,} words; raise the longest sentence"
            )

    @property
    def report(self) -> str:
        """One line for the user: how many sentences are over-long."""
        every = self._text.check().kept
        counted = f"{self._text.name}: {every - len(self._lines):,} of {every:,} sentences"
        return f"{counted} left out for more than {self._max_length:,} words"

    def _batch(self, sentences: Numbers) -> Batch:
        labels, _ = padded(self._tags.take(sentences), IGNORE)
        name = f"{line_names(self._lines[sentences].tolist())} of {self._text.name}"
        return label_batch(self._sentences.inputs(sentences), labels, name)


def word_batches(
    sentences: Sequence[Sequence[str]], lexicon: Lexicon, tokens: int
) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
    """Batches to tag: the places of their sentences in the list, and the inputs as of `Sentences`.

    Longest first; rows times longest row stay within `tokens`, and a sentence longer than that comes alone.
    """
    spelt = Sentences(sentences, lexicon)
    longest_first = np.argsort(-spelt.rows.lengths, kind="stable")
    for group in within_budget(longest_first, spelt.rows.lengths, tokens):
        yield group.tolist(), spelt.inputs(group)
