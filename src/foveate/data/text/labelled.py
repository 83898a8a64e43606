"""Texts with a label each: one `label<TAB>text` a line."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foveate.data.dataset import without_empty
from foveate.data.splits import COPY, within
from foveate.data.table import LABEL, TEXT, DataTable
from foveate.data.text.files import Paths, as_paths
from foveate.data.text.streamed_text import StreamedText
from foveate.errors import UserError

MANY_LABELS = 20
"""With at most this many different labels, the user is never asked whether the columns are in the right order."""


class Labelled(NamedTuple):
    """A text and its label, with the number (from 1) of the line on which they stand."""

    line: int
    label: str
    text: str

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"line {self.line}"

    def content(self) -> bytes:
        """All that is learned from it."""
        return f"{self.label}\0{self.text}".encode()


def question_columns(name: str, decided: int, labels: str, read: int, texts: str, right: str) -> None:
    """Raise UserError where more different labels than texts to give them to show that columns have changed places."""
    if decided > max(MANY_LABELS, 2 * read):
        raise UserError(
            f"{name} has {decided:,} different {labels} and only {read:,} different {texts}: are its columns swapped? "
            f"a line is {right}"
        )


@dataclass(frozen=True)
class LabelledCounts:
    """The counts of one pass over labelled text."""

    kept: int
    empty: int
    """Empty lines, which are left out."""
    labels: dict[str, int] = field(default_factory=dict)
    """How often each label occurs, in alphabetical order."""


class LabelledText(StreamedText):
    """Labelled texts in the order of their lines, read anew at each iteration; a file is never held in memory.

    Texts and labels are in Unicode NFC, without surrounding space. Empty lines are left out, counted, and reported by
    `report`. What is wrong with a file is a UserError that names the line, raised when a pass reaches it: `check()`
    makes a whole pass, so that nothing fails later.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], Iterable[Labelled | None]],
        keep: Callable[[int], bool] | None = None,
    ) -> None:
        """`read` starts a pass: one item for each line, None for an empty one. `name` stands for the text in messages.

        With `keep`, only the lines whose number it accepts belong to this text.
        """
        self.name, self.unit = name, "texts"
        self.notes: tuple[str, ...] = ()
        self._read = read
        self._keep = keep
        self._counts: LabelledCounts | None = None

    @classmethod
    def from_file(cls, path: Path | str) -> "LabelledText":
        """A file, plain or .gz, with `label<TAB>text` on each line."""
        path = Path(path)
        table = DataTable(path, (LABEL, TEXT))
        return cls(path.name, lambda: (row and Labelled(row.line, *row.cells) for row in table))

    @classmethod
    def from_paths(cls, paths: Paths) -> "LabelledText":
        """Opens what a user names: one file."""
        paths = as_paths(paths)
        if len(paths) != 1:
            raise UserError(f"labelled text is one file of label<TAB>text lines; {len(paths)} files were given")
        return cls.from_file(paths[0])

    @classmethod
    def from_pairs(cls, pairs: Sequence[tuple[str, str]], name: str = "memory") -> "LabelledText":
        """(label, text) pairs; pair N counts as line N."""
        return cls(name, lambda: (Labelled(line, label, text) for line, (label, text) in enumerate(pairs, 1)))

    def part(self, name: str, keep: Callable[[int], bool]) -> "LabelledText":
        """The lines of this text whose number (from 1) `keep` accepts; they keep their numbers."""
        return LabelledText(name, self._read, within(self._keep, keep))

    def held_out(self, every: int) -> tuple["LabelledText", "LabelledText"]:
        """As `hold_out`, by the texts in any letter case and the labels. Raises UserError as `check` does."""
        self.check()
        rest, held = self.hold_out(every, lambda one: {COPY: one.text.casefold()}, lambda one: (one.label,))
        assert isinstance(rest, LabelledText)
        assert isinstance(held, LabelledText)
        return rest, held

    def _sides(self, held: np.ndarray, notes: Sequence[str]) -> tuple["LabelledText", "LabelledText"]:
        """The lines of both sides are read anew."""
        lines = frozenset(example.line for example, chosen in zip(self, held.tolist(), strict=True) if chosen)
        rest = self.part(self.name, lambda line: line not in lines)
        rest.notes = tuple(notes)
        return rest, self.part(f"{self.name}, held out", lines.__contains__)

    def __iter__(self) -> Iterator[Labelled]:
        return (example for example in self._lines() if example is not None)

    def texts(self) -> Iterator[str]:
        return (example.text for example in self)

    def labels(self) -> Iterator[str]:
        return (example.label for example in self)

    @property
    def lines(self) -> list[int | None]:
        lines: list[int | None] = []
        deque(without_empty(self._lines(), lines), 0)
        return lines

    def check(self) -> LabelledCounts:
        """Read everything once (and only once, however often this is called) and count.

        Raises UserError on whatever is wrong with the file, when it holds no text, and where labels and texts seem to
        have changed places.
        """
        if self._counts is None:
            found = Counter(None if example is None else example.label for example in self._lines())
            empty = found.pop(None, 0)
            if not found:
                raise UserError(f"{self.name}: there is no labelled text in it")
            labels = {str(label): found[label] for label in sorted(map(str, found))}
            if len(labels) > MANY_LABELS and 2 * len(labels) > found.total():
                texts = len({hash(text) for text in self.texts()})
                question_columns(self.name, len(labels), "labels", texts, "texts", "label<TAB>text")
            self._counts = LabelledCounts(found.total(), empty, labels)
        return self._counts

    @property
    def report(self) -> str:
        """One line for the user: how much there is of each label, and how many lines were left out."""
        counts = self.check()
        shown = ", ".join(f"{count:,} {label or 'without a label'}" for label, count in list(counts.labels.items())[:5])
        more = f" and {len(counts.labels) - 5} labels more" if len(counts.labels) > 5 else ""
        left_out = [f"{counts.empty:,} empty lines left out"] if counts.empty else []
        return "; ".join([f"{self.name}: {counts.kept:,} texts ({shown}{more})", *left_out, *self.notes])

    def _lines(self) -> Iterator[Labelled | None]:
        for number, example in enumerate(self._read(), 1):
            if self._keep is None or self._keep(number):
                yield example
