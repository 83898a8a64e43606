"""Text in which each word has a tag: one `word<TAB>tag` a line, an empty line after each sentence."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from foveate.data.lines import read_sentences
from foveate.data.sides import together, within
from foveate.errors import UserError


class Tagged(NamedTuple):
    """A sentence as words and a tag for each, with the number (from 1) of the line on which it begins."""

    line: int
    words: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True)
class TaggedCounts:
    """What one pass over a tagged text found."""

    kept: int
    """Sentences."""
    words: int
    tags: tuple[str, ...]
    """Each tag once, in alphabetical order."""


class TaggedText:
    """Tagged sentences in the order of their lines, read anew at each iteration; a file is never held in memory.

    Words and tags are in Unicode NFC, without surrounding space. What is wrong with a file is a UserError that names
    the line, raised when a pass reaches it: `check()` makes a whole pass, so that nothing fails later.
    """

    def __init__(
        self, name: str, read: Callable[[], Iterable[Tagged]], keep: Callable[[int], bool] | None = None
    ) -> None:
        """`read` starts a pass. `name` stands for the text in messages.

        With `keep`, only the sentences whose number (from 1) it accepts belong to this text.
        """
        self.name = name
        self._read = read
        self._keep = keep
        self._counts: TaggedCounts | None = None

    @classmethod
    def from_file(cls, path: Path) -> "TaggedText":
        """A file, plain or .gz, with `word<TAB>tag` on each line; empty lines part the sentences."""
        return cls(path.name, lambda: _read(path))

    @classmethod
    def from_paths(cls, paths: Sequence[Path]) -> "TaggedText":
        """What a user names: one file."""
        if len(paths) != 1:
            raise UserError(f"tagged text is one file of word<TAB>tag lines; {len(paths)} files were given")
        return cls.from_file(paths[0])

    @classmethod
    def from_sentences(cls, sentences: Sequence[Sequence[tuple[str, str]]], name: str = "memory") -> "TaggedText":
        """Sentences of (word, tag) pairs; sentence N counts as line N."""
        return cls(name, lambda: (_tagged(line, pairs) for line, pairs in enumerate(sentences, 1)))

    def part(self, name: str, keep: Callable[[int], bool]) -> "TaggedText":
        """The sentences of this text whose number (from 1) `keep` accepts; they keep their numbers and lines."""
        return TaggedText(name, self._read, within(self._keep, keep))

    def held_out(self, every: int) -> tuple["TaggedText", "TaggedText"]:
        """The text without one of `every` of its sentences, and these. Raises UserError where that are none."""
        drawn = together((" ".join(sentence.words) for sentence in self), every)
        held = frozenset(number for place, (number, _) in enumerate(self._numbered(), 1) if drawn(place))
        if not held:
            raise UserError(f"{self.name}: its sentences repeat, so that none can be held out; give text to validate")
        rest = self.part(self.name, lambda number: number not in held)
        return rest, self.part(f"{self.name}, held out", held.__contains__)

    def __iter__(self) -> Iterator[Tagged]:
        return (sentence for _, sentence in self._numbered())

    def check(self) -> TaggedCounts:
        """Read everything once (and only once, however often this is called) and count.

        Raises UserError on whatever is wrong with the file, and when it holds no sentence.
        """
        if self._counts is None:
            kept, words = 0, 0
            tags: set[str] = set()
            for sentence in self:
                kept, words = kept + 1, words + len(sentence.words)
                tags.update(sentence.tags)
            if not kept:
                raise UserError(f"{self.name}: there is no sentence in it")
            self._counts = TaggedCounts(kept, words, tuple(sorted(tags)))
        return self._counts

    @property
    def report(self) -> str:
        """One line for the user: how much there is."""
        counts = self.check()
        return f"{self.name}: {counts.kept:,} sentences, {counts.words:,} words, {len(counts.tags)} tags"

    def _numbered(self) -> Iterator[tuple[int, Tagged]]:
        for number, sentence in enumerate(self._read(), 1):
            if self._keep is None or self._keep(number):
                yield number, sentence


def _tagged(line: int, pairs: Sequence[tuple[str, str]]) -> Tagged:
    words, tags = zip(*pairs, strict=True)
    return Tagged(line, words, tags)


def _read(path: Path) -> Iterator[Tagged]:
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(read_sentences(path), 1):
        if line:
            pairs.append(_pair(path, number, line))
        elif pairs:
            yield _tagged(number - len(pairs), pairs)
            pairs = []
    if pairs:
        yield _tagged(number + 1 - len(pairs), pairs)


def _pair(path: Path, number: int, line: str) -> tuple[str, str]:
    """The word and the tag on a line, which has no space around it: an empty side leaves no tab."""
    tabs = line.count("\t")
    if tabs != 1:
        raise UserError(
            f"{path}, line {number}: {tabs} tabs, where one tab must part a word from its tag (neither may be empty)"
        )
    word, tag = line.split("\t")
    return word.strip(), tag.strip()
