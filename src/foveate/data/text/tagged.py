"""Text in which each word has a tag: one `word<TAB>tag` a line, an empty line after each sentence."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from foveate.data.dataset import Dataset
from foveate.data.layout import read_by
from foveate.data.text.files import Paths, as_paths, read_sentences
from foveate.data.text.labelled import question_columns
from foveate.data.text.layouts import TAGGED, TaggedLine
from foveate.errors import UserError


@dataclass(frozen=True)
class Tagged:
    """A sentence as words and a tag for each, with the number (from 1) of the line on which it begins."""

    line: int
    words: tuple[str, ...]
    tags: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"line {self.line}"

    def content(self) -> bytes:
        return json.dumps((self.words, self.tags)).encode()

    @classmethod
    def of_pairs(cls, line: int, pairs: Iterable[tuple[str, str]]) -> "Tagged":
        """A sentence of (word, tag) pairs. Text repeats its words: each is in memory once."""
        words, tags = zip(*pairs, strict=True)
        return cls(line, tuple(map(sys.intern, words)), tuple(map(sys.intern, tags)))


def tagged_text(paths: Paths) -> Dataset[Tagged]:
    """The sentences of one file, plain or .gz, with `word<TAB>tag` on each line; empty lines part the sentences.

    Files of the layouts `TAGGED` are read too.
    Words and tags are in Unicode NFC, without surrounding space. Raises UserError for what is wrong with the file,
    which names the line, and where it holds no sentence.
    """
    paths = as_paths(paths)
    if len(paths) != 1:
        raise UserError(f"tagged text is one file of word<TAB>tag lines; {len(paths)} files were given")
    listed = read_by(TAGGED, paths[0])
    return tagged_dataset(paths[0].name, _read(paths[0]) if listed is None else map(_of_layout, listed))


def _of_layout(sentence: list[TaggedLine]) -> Tagged:
    return Tagged.of_pairs(sentence[0].line, [(one.word, one.tag) for one in sentence])


def tagged_dataset(name: str, sentences: Iterable[Tagged]) -> Dataset[Tagged]:
    """The sentences with a report of how many words and tags they have. Raises UserError where there is none."""
    sentences = list(sentences)
    if not sentences:
        raise UserError(f"{name}: there is no sentence in it")
    tags = {tag for sentence in sentences for tag in sentence.tags}
    different = len({word for sentence in sentences for word in sentence.words})
    question_columns(name, len(tags), "tags", different, "words", "word<TAB>tag")
    return Dataset(name, sentences, "sentences", [_count_words, f"{len(tags)} tags"])


def _count_words(sentences: Iterable[Tagged]) -> str:
    return f"{sum(len(sentence.words) for sentence in sentences):,} words"


def _read(path: Path) -> Iterator[Tagged]:
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(read_sentences(path), 1):
        if line:
            pairs.append(_pair(path, number, line))
        elif pairs:
            yield Tagged.of_pairs(number - len(pairs), pairs)
            pairs = []
    if pairs:
        yield Tagged.of_pairs(number + 1 - len(pairs), pairs)


def _pair(path: Path, number: int, line: str) -> tuple[str, str]:
    """The word and the tag on a line, which has no space around it: an empty side leaves no tab."""
    tabs = line.count("\t")
    if tabs != 1:
        raise UserError(
            f"{path}, line {number}: {tabs} tabs, but one tab must separate a word from its tag (neither may be empty)"
        )
    word, tag = line.split("\t")
    return word.strip(), tag.strip()
