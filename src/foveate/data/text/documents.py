"""Running prose: paragraphs in the order of their text, their sentences, and passages of a few sentences."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from foveate.data.folders import files_below
from foveate.data.splits import COPY, hold_out, within
from foveate.data.table import TEXT, DataTable
from foveate.data.table.formats import ending, is_table
from foveate.data.text.files import TEXTS, Paths, as_paths, read_sentences
from foveate.data.text.scripts import count_words, word_spans
from foveate.errors import UserError

_CLOSING = r"""["'”’»)\]」』）》〉】〗]"""

_MAY_END = re.compile(
    rf"""[.!?…।؟۔]["'”’»)\]]*\s+(?=["'“‘«(\[¿¡]*[^\W_a-z])"""
    rf"""|(?<![。！？])[。！？]++(?:{_CLOSING}+\s*(?=[「『“（《〈【〖])|(?!{_CLOSING})\s*(?=\S))"""
)
"""A mark that ends sentences, and after it something that may begin one. In Chinese and Japanese no space is between;
there a sentence goes on after what is quoted, unless a quotation follows."""

_UNSPACED = re.compile(rf"[。！？]{_CLOSING}*$")
"""The end of a sentence after which no space stands."""

_ABBREVIATION = re.compile(
    r"(?:^|[\W_])(?:[A-HJ-Z]|Mrs?|Ms|Dr|Messrs|St|Mt|Ft|Gen|Gov|Lt|Col|Capt|Maj|Adm|Sgt|Rep|Sen|Hon|Rev|Prof|[JS]r"
    r"|Nos?|Vol|Art|Sec|U\.S|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|e\.g|i\.e|viz|vs|cf)$"
)
"""A word after which a full stop ends no sentence: an initial, or an abbreviation. They are English."""

_EMPTY_LINES = re.compile(r"\n\s*\n")

_LONGER_THAN_ANY = 9
"""Characters that no abbreviation fills."""


def joined(sentences: Iterable[str]) -> str:
    """Sentences as they stand one behind the other, with a space between them where their script has one."""
    return "".join(one if _UNSPACED.search(one) else f"{one} " for one in sentences).rstrip()


def document_of(place: str) -> str:
    """The file, chapter or address that a place is in."""
    return place.partition(", line ")[0]


class Paragraph(NamedTuple):
    """A paragraph, the place where it stands ("emma.txt, line 17"), and what kind of text it is of."""

    place: str
    condition: str
    """Conditions that a model may get for the text that it is to write, such as its author or its decade."""
    text: str


Turns = tuple[tuple[str, str], ...]
"""Who says each message of a conversation, and what."""


@dataclass(frozen=True)
class Conversation:
    """Messages that a model reads, and perhaps learns answers of."""

    place: str
    turns: Turns
    known: int = 0
    """Of this many messages, the first ones, no answer is learned."""


class Passage(NamedTuple):
    """A few consecutive sentences of one paragraph; or a conversation, whose sentences are what the assistant says."""

    place: str
    condition: str
    sentences: tuple[str, ...]
    messages: Turns = ()
    """Those of a conversation."""
    is_prompt: bool = False
    """Whether the whole text is one to go on from."""

    @property
    def text(self) -> str:
        return joined(self.sentences)

    @property
    def document(self) -> str:
        """The file, chapter or address that it is of."""
        return document_of(self.place)

    @property
    def conversation(self) -> Conversation:
        """The messages of a conversation."""
        return Conversation(self.place, self.messages)

    @property
    def question(self) -> Conversation | None:
        """The same of a conversation that is to be answered; None for prose."""
        return self.conversation if self.messages else None

    def content(self) -> bytes:
        """All that a model may learn from it."""
        said = (part for message in self.messages for part in message)
        return "\0".join([self.place, self.condition, *self.sentences, *said]).encode()


@dataclass(frozen=True)
class ProseCounts:
    """The counts of one pass over paragraphs."""

    kept: int
    """Paragraphs."""
    words: int


class Prose:
    """Paragraphs, read anew at each iteration, in Unicode NFC and single spaces; files are never held in memory.

    What is wrong with a file is a UserError, raised when a pass reaches it: `check()` makes a whole pass.
    """

    def __init__(
        self, name: str, read: Callable[[], Iterable[Paragraph]], keep: Callable[[int], bool] | None = None
    ) -> None:
        """`read` starts a pass. `name` stands for the text in messages.

        With `keep`, only the paragraphs whose number (from 1) it accepts belong to this text.
        """
        self.name = name
        self._read = read
        self._keep = keep
        self._counts: ProseCounts | None = None

    @classmethod
    def from_paths(cls, paths: Paths) -> "Prose":
        """Plain text files (or .gz), folders of `.txt` files, and tables with a column of texts: empty lines part
        their paragraphs.

        The condition of a paragraph is the name of its file, without its ending.
        """
        paths = as_paths(paths)
        files = [file for path in paths for file in _files(path)]
        readers = [
            _rows(DataTable(file, (TEXT,), empty_cells=True)) if is_table(file) else _lines(file) for file in files
        ]
        name = files[0].name if len(files) == 1 else f"{len(files)} files"
        return cls(name, lambda: (paragraph for read in readers for paragraph in read()))

    @classmethod
    def from_paragraphs(cls, paragraphs: Sequence[Paragraph], name: str = "memory") -> "Prose":
        return cls(name, lambda: paragraphs)

    def part(self, name: str, keep: Callable[[int], bool]) -> "Prose":
        """The paragraphs of this text whose number (from 1) `keep` accepts; they keep their numbers."""
        return Prose(name, self._read, within(self._keep, keep))

    def held_out(self, every: int) -> tuple["Prose", "Prose"]:
        """The text without one of `every` of its paragraphs, and these. Raises UserError where that are none."""
        ties = ({COPY: one.text.casefold(), "document": document_of(one.place)} for one in self)
        chosen = hold_out(ties, every).held
        held = frozenset(number for (number, _), drawn in zip(self._numbered(), chosen.tolist(), strict=True) if drawn)
        if not held:
            raise UserError(f"{self.name}: too few different paragraphs to hold some out; give text to validate")
        rest = self.part(self.name, lambda number: number not in held)
        return rest, self.part(f"{self.name}, held out", held.__contains__)

    def __iter__(self) -> Iterator[Paragraph]:
        return (paragraph for _, paragraph in self._numbered())

    def passages(self, words: int) -> Iterator[Passage]:
        """The text in passages of whole sentences with at most `words` words (separated by spaces) each.

        How the text is cut depends on no tokenizer, so the perplexities of two models on the same passages compare.
        A sentence with more words is cut.
        """
        for place, condition, text in self:
            pieces = (piece for sentence in sentences(text) for piece in _cut_sentence(sentence, words))
            for group in _grouped(pieces, words):
                yield Passage(place, condition, group)

    def whole_passages(self, words: int) -> Iterator[Passage]:
        """As `passages`, but nothing is cut: a sentence with more words is a passage of its own."""
        for place, condition, text in self:
            for group in _grouped(sentences(text), words):
                yield Passage(place, condition, group)

    def sentences(self) -> Iterator[Passage]:
        """The text in passages of one sentence each, whatever its length."""
        for place, condition, text in self:
            for sentence in sentences(text):
                yield Passage(place, condition, (sentence,))

    def conditions(self) -> list[str]:
        """The distinct conditions of the paragraphs, in alphabetical order."""
        return sorted({paragraph.condition for paragraph in self})

    def check(self) -> ProseCounts:
        """Read everything once (and only once, however often this is called) and count.

        Raises UserError on whatever is wrong with the files, and when there is no text.
        """
        if self._counts is None:
            lengths = [count_words(paragraph.text) for paragraph in self]
            if not lengths:
                raise UserError(f"{self.name}: there is no text in it")
            self._counts = ProseCounts(len(lengths), sum(lengths))
        return self._counts

    @property
    def report(self) -> str:
        """One line for the user: how much text there is."""
        counts = self.check()
        return f"{self.name}: {counts.kept:,} paragraphs, {counts.words:,} words"

    def _numbered(self) -> Iterator[tuple[int, Paragraph]]:
        for number, (place, condition, text) in enumerate(self._read(), 1):
            tidy = unicodedata.normalize("NFC", " ".join(text.split()))
            if tidy and (self._keep is None or self._keep(number)):
                yield number, Paragraph(place, condition, tidy)


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph, by their marks: nothing is lost but the spaces between them.

    A full stop ends no sentence after an abbreviation, an initial ("John F. Kennedy"), or before a small letter.
    """
    found, start = [], 0
    for mark in _MAY_END.finditer(text):
        before = text[max(start, mark.start() - _LONGER_THAN_ANY) : mark.start()]
        if text[mark.start()] != "." or not _ABBREVIATION.search(before):
            found.append(text[start : mark.end()].rstrip())
            start = mark.end()
    return [*found, text[start:]] if text[start:] else found


def _grouped(parts: Iterable[str], words: int) -> Iterator[tuple[str, ...]]:
    """Consecutive sentences in groups of at most `words` words; a longer one alone."""
    group: list[str] = []
    count = 0
    for part in parts:
        length = count_words(part)
        if group and count + length > words:
            yield tuple(group)
            group, count = [], 0
        group.append(part)
        count += length
    if group:
        yield tuple(group)


def _cut_sentence(sentence: str, words: int) -> Iterator[str]:
    """A sentence in pieces of `words` words, the last of them shorter."""
    if count_words(sentence) <= words:
        yield sentence
        return
    found = word_spans(sentence)
    for start in range(0, len(found), words):
        part = found[start : start + words]
        yield sentence[part[0][0] : part[-1][1]]


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = files_below(path, TEXTS)
    if not files:
        raise UserError(f"the folder {path} holds no .txt file, and no table such as texts.jsonl right in it")
    return files


def _lines(file: Path) -> Callable[[], Iterator[Paragraph]]:
    """Starts a pass over a plain text."""
    condition = file.name.removesuffix(".gz").removesuffix(".txt") or file.name

    def read() -> Iterator[Paragraph]:
        lines: list[str] = []
        for number, line in enumerate(chain(read_sentences(file), [""]), 1):
            if line:
                lines.append(line)
            elif lines:
                yield Paragraph(f"{file.name}, line {number - len(lines)}", condition, " ".join(lines))
                lines = []

    return read


def _rows(table: DataTable) -> Callable[[], Iterator[Paragraph]]:
    """Starts a pass over the texts of a table."""
    name = table.path.name
    condition = name.lower().removesuffix(".gz").removesuffix(f".{ending(table.path)}")

    def read() -> Iterator[Paragraph]:
        for row in filter(None, table):
            for text in _EMPTY_LINES.split(row.cells[0]):
                if text.strip():
                    yield Paragraph(f"{name}, {row.place}", condition, " ".join(text.split()))

    return read
