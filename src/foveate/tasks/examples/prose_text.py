"""Which prose to learn from, and how it becomes passages and tokens: what the recipes of language models and
auto-encoders share."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import track

from foveate.data import TRAINERS, Passage, SubwordTokenizer, Tokens
from foveate.data.dataset import Dataset
from foveate.errors import at_least
from foveate.tasks.examples.data_options import check_vocabulary
from foveate.tasks.examples.example_source import ExampleSource

FILES = "FILE ..."
"""What --data takes, in messages."""


COUNTED = 1_000_000
"""Passages in which n-grams are counted at most."""

VOCABULARY_FROM = 100_000
"""Passages from which a vocabulary is learned at most, drawn evenly from the text."""

DOCUMENTS = 20
"""Of so many documents one is held out, or more where passages are few."""


def texts_to_count(train: Dataset[Passage]) -> Iterator[str]:
    """The texts from which a vocabulary is learned: more of them would find the same frequent words."""
    return (passage.text for passage in train.iterate_some(VOCABULARY_FROM))


def where_to_count(train: Dataset[Passage]) -> list[str]:
    """A line for the user where `texts_to_count` are not all."""
    every = -(-len(train) // VOCABULARY_FROM)
    return [f"the vocabulary is learned from one passage in {every:,}, evenly from all over"] if every > 1 else []


def hold_out_documents(train: Dataset[Passage], every: int) -> tuple[Dataset[Passage], Dataset[Passage]] | None:
    """The passages of most documents, and those of one of `every` or of twenty; None where documents are few."""
    every = min(every, DOCUMENTS)
    return train.held_out_whole(every, lambda passage: passage.document)


def watch(passages: Dataset[Passage], console: Console) -> Iterable[Passage]:
    """The passages, with a bar in a terminal that says how many were tokenised."""
    hidden = not console.is_terminal
    return track(passages, "tokenising", len(passages), console=console, transient=True, disable=hidden)


@dataclass
class ProseText(ExampleSource):
    """Which prose to learn from."""

    source: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")] = None
    """Prose by name, instead of your own files: see `foveate data`."""
    data: tuple[Path, ...] = ()
    """Your own prose: plain text files (or .gz) or folders of .txt and .txt.gz files; empty lines part paragraphs."""
    validation: tuple[Path, ...] = ()
    """Prose to validate on, likewise. Without it, up to 1,000 paragraphs of the data are held out."""
    tokens: Tokens = "subwords"
    """What a text is cut into."""
    vocabulary: int = 3000
    """How many of them to learn, at most."""
    lowercase: bool = False
    """Read and write lower case only."""
    batch_tokens: int = 2048
    """Tokens of a batch, padding included."""

    def check(self) -> None:
        super().check()
        check_vocabulary(self.vocabulary)
        at_least(1, "batch_tokens", self.batch_tokens)

    def tokenizer(self, texts: Iterable[str]) -> SubwordTokenizer:
        """A vocabulary learned from some texts."""
        return TRAINERS[self.tokens](texts, self.vocabulary, self.lowercase)


@dataclass
class LanguageText(ProseText):
    """Which prose to learn from, and how it becomes passages of tokens."""

    validation: tuple[Path, ...] = ()
    """Prose to validate on, likewise. Without it, one in twenty of the files is held out, or, of fewer files, up to
    1,000 passages; more of few data."""
    passage_words: int = 100
    """The text is cut into passages of whole sentences with at most so many words."""
    max_length: int = 512
    """Passages with more tokens than this are left out (and counted)."""
    validation_passages: int = 200
    """Passages that each validation during training reads."""

    @property
    def validation_examples(self) -> int:
        return self.validation_passages

    def check(self) -> None:
        super().check()
        for name in ("passage_words", "max_length", "validation_passages"):
            at_least(1, name, getattr(self, name))


@dataclass
class AutoencodeText(ProseText):
    """Which prose to learn from, and what of it is read into one vector."""

    passage_words: int | None = None
    """Learn passages of whole sentences with at most so many words. Without it single sentences or, with a
    hierarchical model, passages of at most 40 words."""
    max_length: int = 30
    """Sentences (or passages, for a model that is not hierarchical) with more tokens than this are left out (and
    counted)."""
    validation_passages: int = 200
    """Sentences or passages that each validation during training writes again."""

    @property
    def validation_examples(self) -> int:
        return self.validation_passages

    def check(self) -> None:
        super().check()
        for name in ("max_length", "validation_passages"):
            at_least(1, name, getattr(self, name))
        at_least(1, "passage_words", 1 if self.passage_words is None else self.passage_words)
