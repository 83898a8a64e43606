"""Passages of running prose that are read, and what tasks share that learn from prose."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.progress import track

from foveate.console import plain_console
from foveate.data.batching import Batching
from foveate.data.buckets import Buckets
from foveate.data.dataset import Dataset
from foveate.data.text.documents import Passage, Prose
from foveate.data.text.spooled_passages import spooled
from foveate.data.text.strided_buckets import text_buckets
from foveate.data.tokens.tokenizers import TRAINERS, Tokens
from foveate.errors import UserError
from foveate.forms.form import Learned
from foveate.forms.read_text import ReadText
from foveate.forms.written import check_vocabulary, require_tokenizer
from foveate.training import main_process

COUNTED = 1_000_000
"""Passages in which n-grams are counted at most."""

VOCABULARY_FROM = 100_000
"""Passages from which a vocabulary is learned at most, drawn evenly from the text."""


def passages_of(prose: Prose, found: Iterable[Passage]) -> Dataset[Passage]:
    """The passages that were found in some prose, in memory or, if they are many, in a file.

    Raises UserError where there are none.
    """
    passages = spooled(found)
    if not passages:
        raise UserError(f"{prose.name}: there is no text in it")
    return Dataset(prose.name, passages, "passages", [_count_words])


def _count_words(passages: Iterable[Passage]) -> str:
    return f"{sum(len(one.text.split()) for one in passages):,} words"


@dataclass
class ReadProse(ReadText):
    """A passage of prose, by a vocabulary that is learned from the text."""

    saved_apart: ClassVar[Mapping[str, str]] = {"tokenizer": "tokenizer.json"}
    special: ClassVar[tuple[str, ...]] = ()
    """Further special entries of the vocabulary."""

    tokens: Tokens = "subwords"
    """What a text is cut into."""
    vocabulary: int = 3000
    """How many of them to learn, at most."""
    lowercase: bool = False
    """Read and write lower case only."""
    tokenizer: Learned[Any] = None

    def check(self) -> None:
        super().check()
        check_vocabulary(self.vocabulary)

    def check_learned(self) -> None:
        require_tokenizer(self, "tokenizer")

    def learn(self, train: Dataset[Passage], architecture: Any) -> "ReadProse":
        """With a vocabulary of the prose, unless trained weights brought theirs."""
        found = copy(self)
        if found.tokenizer is not None:
            return found
        texts = (passage.text for passage in train.iterate_some(VOCABULARY_FROM))
        found.tokenizer = TRAINERS[self.units](texts, self.vocabulary, self.lowercase, self.special)
        every = -(-len(train) // VOCABULARY_FROM)
        found._advice = f"the vocabulary is learned from one passage in {every:,}, evenly from all over"
        found._advice *= every > 1
        return found

    _advice = ""  # told once, after learning, and not saved

    @property
    def units(self) -> str:
        """What the vocabulary consists of."""
        return self.tokens

    @property
    def report(self) -> str:
        return "\n".join(filter(None, (self._advice, super().report)))

    def sizes(self) -> dict[str, int]:
        return {"vocabulary": len(self.words)}

    @property
    def summary(self) -> str:
        return f"{len(self.words):,} {self.tokens}"

    def value(self, example: Passage) -> Any:
        return example.text

    def place(self, example: Passage) -> str:
        return example.text

    def group(self, example: Passage) -> Hashable:
        return example.text.casefold()


def watch(passages: Dataset[Passage]) -> Iterable[Passage]:
    """The passages, with a bar in a terminal that says how many were tokenised."""
    console = plain_console(stderr=True, soft_wrap=True, quiet=not main_process())
    hidden = not console.is_terminal
    return track(passages, "tokenising", len(passages), console=console, transient=True, disable=hidden)


def row_buckets(
    kept: Dataset[Any], read: int, batching: Batching[Any], most: int, rows: Sequence[Any] | None = None
) -> Buckets:
    """Buckets of what was kept of the passages that were read: those of at most this many tokens; or of `rows` in which
    they are packed.

    Raises UserError where that is none.
    """
    limit = f"{most:,} tokens"
    if not len(kept):
        raise UserError(f"{kept.name}: each of the {read:,} {kept.unit} has more than {limit}; raise max_length")
    left_out = f"{read - len(kept):,} of {read:,} {kept.unit}"
    report = f"{kept.name}: {left_out} left out for more than {limit}"
    return text_buckets(kept if rows is None else Dataset(kept.name, rows, "rows"), batching, report)
