"""Which pairs of texts to learn from, and how they become tokens: what translating and matching share."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import tyro

from foveate.contracts import Tokenizer
from foveate.data import TRAINERS, PairTokens, ParallelText, Splits, join_pieces, open_source
from foveate.errors import TextError, UserError, at_least, quoted
from foveate.tasks.examples.data_options import check_vocabulary
from foveate.tasks.examples.example_source import ExampleSource
from foveate.tasks.former.recipe import Architecture, Recipe
from foveate.tasks.former.task import Task
from foveate.tasks.start.parts import WholeRun
from foveate.tasks.start.weights import Start

LANGUAGE = re.compile("[a-z]{2,3}([_-][A-Za-z]+)?")
"""What codes of languages look like."""


@dataclass
class PairText(ExampleSource):
    """Which sentences to learn from, and how they become tokens."""

    source: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")] = None
    """Text by name, instead of your own files: see `foveate data`."""
    data: tuple[Path, ...] = ()
    """Your own text: two line-aligned files, or one with source<TAB>target on each line, plain or .gz; or folders of
    programs' translations (.mo, .po), such as /usr/share/locale."""
    validation: tuple[Path, ...] = ()
    """Text to validate on, likewise. Without it, up to 1,000 pairs of the data are held out."""
    from_language: str = "en"
    """Language to translate from, for text by name and programs' translations."""
    to_language: Annotated[str, tyro.conf.arg(name="to")] = "fr"
    """Language to translate to, likewise."""
    tokens: PairTokens = "subwords"
    """What a sentence is cut into. By characters it is long: give --max-length, too. Pieces are those of a text that
    was cut before, with @@ behind each that goes on ("Was@@ ser"): what is written is joined to words."""
    vocabulary: int = 8000
    """How many of them to learn, at most, of both languages together or (not shared) of each."""
    shared: bool = True
    """One vocabulary for both languages."""
    lowercase: bool = False
    """Read and write lower case only."""
    batch_tokens: int = 4096
    """Tokens of a batch on its longer side, padding included."""
    max_length: int = 128
    """Pairs with more tokens than this on a side are left out (and counted)."""
    validation_sentences: int = 500
    """Pairs that each validation during training measures the model on, by greedy search. In the end up to four times
    as many others, translated as you asked, choose between the best checkpoint and the average; or all, if there are
    fewer others than these."""

    @property
    def validation_examples(self) -> int:
        return self.validation_sentences

    @property
    def languages(self) -> tuple[str, str]:
        return self.from_language, self.to_language

    def check(self) -> None:
        super().check()
        check_vocabulary(self.vocabulary)
        for name in ("batch_tokens", "max_length", "validation_sentences"):
            at_least(1, name, getattr(self, name))
        if self.batch_tokens <= self.max_length:
            raise UserError(
                f"a batch of {self.batch_tokens:,} tokens cannot hold one sentence of {self.max_length:,} and its end: "
                f"raise the tokens in a batch or lower the longest sentence"
            )

    def words_of(self, texts: Sequence[str]) -> list[str]:
        """The texts as they are read by people: pieces are joined."""
        return [join_pieces(text) for text in texts] if self.tokens == "pieces" else list(texts)

    def train_tokenizers(self, train: ParallelText) -> tuple[Tokenizer, Tokenizer]:
        """Of the source and of the target; the same one twice where they share a vocabulary."""
        trained = TRAINERS[self.tokens]
        if self.shared:
            both = trained(chain.from_iterable(train), self.vocabulary, self.lowercase)
            return both, both
        return (
            trained(train.sources(), self.vocabulary, self.lowercase),
            trained(train.targets(), self.vocabulary, self.lowercase),
        )


@dataclass(kw_only=True)
class PairTask(Task[Architecture]):
    """A task that learns from pairs of texts, which are streamed from disk."""

    files = "SRC TGT"
    start_parts = WholeRun(examples=("tokens", "vocabulary", "shared", "lowercase"))

    check_length, example_contents = Recipe.check_length, Recipe.example_contents

    @cached_property
    def weights(self) -> Start:
        """What `start` names. Raises UserError where there is no model, which tells how a language is given."""
        if self.start is not None and LANGUAGE.fullmatch(str(self.start)) and not self.start.exists():
            raise UserError(f"there is no folder {self.start} to begin from; of a language, say --from-language")
        return super().weights

    def read(self, paths: Sequence[Path]) -> ParallelText:
        return ParallelText.from_paths(paths, self.examples.languages)

    def open_source(self, name: str) -> Splits[Any]:
        source, target = self.examples.languages
        return open_source(name, source, target, task=self.task)


def split_pair(text: str, place: int = 0) -> tuple[str, str]:
    """Both sides of `source<TAB>target`; an empty line is an empty pair."""
    source, *others = text.split("\t")
    if len(others) != 1 and text.strip():
        raise TextError(place, f"{quoted(text)} has {len(others)} tabs, where one tab must part two texts")
    return source.strip(), "".join(others).strip()
