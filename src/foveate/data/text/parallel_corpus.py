"""Pairs of sentences as the user has them: streamed from disk, in Unicode NFC, counted."""

import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from foveate.data.dataset import without_empty
from foveate.data.gettext.catalogues import Catalogues
from foveate.data.splits import draws, within
from foveate.data.table import SOURCE, TARGET, DataTable, Row
from foveate.data.text.files import CATALOGUES, Paths, as_paths, file_lines
from foveate.data.text.streamed_text import StreamedText
from foveate.errors import UserError


class Pair(NamedTuple):
    """A sentence and its translation, with the number (from 1) of the line they stand on."""

    line: int
    source: str
    target: str


@dataclass(frozen=True)
class PairCounts:
    """The counts of one pass over sentence pairs."""

    kept: int
    empty: int
    """Pairs left out because a side, or both, is empty."""
    first_empty: int | None
    """The line of the first of them."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What the reader left out before that: how many, by reason."""


class ParallelText(StreamedText):
    """Sentence pairs in the order of their lines, read anew at each iteration; files are never held in memory.

    Iterating yields `(source, target)` in Unicode NFC without surrounding space; `pairs()` gives the line numbers too.
    Pairs with an empty side are left out, counted, and reported by `report`. What is wrong with a file is a UserError,
    raised when a pass reaches it: `check()` makes a whole pass, so that nothing fails later.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], Iterable[tuple[str, str]]],
        notes: Sequence[str] = (),
        keep: Callable[[int], bool] | None = None,
        left_out: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        """`read` starts a pass: one raw pair for each line. `name` stands for the text in messages.

        With `keep`, only the lines whose number it accepts belong to this text. `left_out` says after a pass what
        `read` itself has left out: {"repeated": 17}.
        """
        self.name = name
        self.unit = "pairs"
        self.notes = tuple(notes)
        """What to show beside the pair of each line (the emoji of a message), where there is such a thing."""
        self.shared = 0
        """Pairs that share a sentence with others, and so are on their side."""
        self._read = read
        self._keep = keep
        self._left_out = left_out
        self._counts: PairCounts | None = None

    @classmethod
    def from_files(cls, source: Path | str, target: Path | str) -> "ParallelText":
        """Two files, plain or .gz, whose line N are translations of each other."""
        source, target = Path(source), Path(target)
        return cls(source.name, lambda: _read_aligned(source, target))

    @classmethod
    def from_tsv(cls, path: Path | str, name: str | None = None) -> "ParallelText":
        """One file, plain or .gz, with `source<TAB>target` on each line."""
        path = Path(path)
        table = DataTable(path, (SOURCE, TARGET), empty_cells=True)
        return cls(name or path.name, lambda: map(_sides, table))

    @classmethod
    def from_catalogues(
        cls, folders: Sequence[Path], source_language: str, target_language: str, name: str | None = None
    ) -> "ParallelText":
        """The messages of the programs whose gettext catalogues (.mo, .po) are below the folders; a line is a pair."""
        catalogues = Catalogues(folders, source_language, target_language)
        name = name or f"{' and '.join(map(str, folders))}, {source_language}-{target_language}"
        return cls(name, catalogues, left_out=lambda: catalogues.left_out)

    @classmethod
    def from_paths(cls, paths: Paths, languages: tuple[str, str] | None = None) -> "ParallelText":
        """Opens what a user names: one TSV, a source and a target file, or folders of catalogues in two languages."""
        paths = as_paths(paths)
        if paths and all(path.is_dir() for path in paths):
            if languages is None:
                raise UserError(f"{paths[0]} is a folder: name the two languages of its catalogues")
            return cls.from_catalogues(paths, *languages)
        if catalogues := [path for path in paths if path.suffix in CATALOGUES]:
            raise UserError(f"{catalogues[0]} is a catalogue: give the folder that it lies in")
        if len(paths) == 1:
            return cls.from_tsv(paths[0])
        if len(paths) == 2:
            return cls.from_files(paths[0], paths[1])
        raise UserError(f"parallel text is one TSV file, or a source and a target file; {len(paths)} files were given")

    @classmethod
    def from_pairs(
        cls, pairs: Sequence[tuple[str, str]], name: str = "memory", notes: Sequence[str] = ()
    ) -> "ParallelText":
        return cls(name, lambda: pairs, notes)

    def part(self, name: str, keep: Callable[[int], bool]) -> "ParallelText":
        """The lines of this text whose number (from 1) `keep` accepts; they keep their numbers."""
        return ParallelText(name, self._read, self.notes, within(self._keep, keep), self._left_out)

    def hold_out(
        self, every: int, ties: Any = None, kinds: Any = None, rare: bool = False
    ) -> tuple["ParallelText", "ParallelText"]:
        """As `held_out`, whose groups are pairs that share a sentence."""
        return self.held_out(every)

    def held_out(self, every: int) -> tuple["ParallelText", "ParallelText"]:
        """The text without about one of `every` of its pairs, and these: no sentence of theirs, in any letter case,
        stands in the rest. Which pairs depends on the text alone. Raises UserError where none can be separated."""
        lines = np.fromiter((pair.line for pair in self.pairs()), np.int64)
        drawn = draws(self)
        chosen = drawn < np.sort(drawn)[len(lines) // every]
        if not chosen.any():
            raise UserError(
                f"{self.name}: its pairs share sentences, so that none can be held out: give text to validate"
            )
        held = frozenset(lines[chosen].tolist())
        rest = self.part(self.name, lambda line: line not in held)
        rest.shared = len(drawn) - len(np.unique(drawn))
        # what the reader leaves out is reported once, by the rest
        return rest, ParallelText(f"{self.name}, held out", self._read, self.notes, held.__contains__)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((source, target) for _, source, target in self.pairs())

    def pairs(self) -> Iterator[Pair]:
        return (pair for pair in self._lines() if pair.source and pair.target)

    def sources(self) -> Iterator[str]:
        return (source for source, _ in self)

    def targets(self) -> Iterator[str]:
        return (target for _, target in self)

    @property
    def lines(self) -> list[int | None]:
        lines: list[int | None] = []
        deque(without_empty((pair if pair.source and pair.target else None for pair in self._lines()), lines), 0)
        return lines

    def check(self) -> PairCounts:
        """Read everything once (and only once, however often this is called) and count.

        Raises UserError on whatever is wrong with the files, and when no pair is left.
        """
        if self._counts is None:
            kept, empty, first_empty = 0, 0, None
            for pair in self._lines():
                if pair.source and pair.target:
                    kept += 1
                else:
                    empty += 1
                    first_empty = first_empty or pair.line
            left_out = self._left_out()
            if not kept and left_out:
                raise UserError(f"{self.name}: no pair is left; left out: {_list_counts(left_out)}")
            if not kept:
                raise UserError(f"{self.name}: none of the {empty:,} pairs has text on both sides")
            self._counts = PairCounts(kept, empty, first_empty, left_out)
        return self._counts

    @property
    def report(self) -> str:
        """One line for the user: how many pairs there are, and how many were left out and why."""
        counts = self.check()
        report = f"{self.name}: {counts.kept:,} pairs"
        if counts.empty:
            report += f", {counts.empty:,} left out for an empty side (first on line {counts.first_empty})"
        if counts.left_out:
            report += f"; left out: {_list_counts(counts.left_out)}"
        if self.shared:
            report += f"; {self.shared:,} share a sentence with others, on the same side as these"
        return report

    def _lines(self) -> Iterator[Pair]:
        for line, (source, target) in enumerate(self._read(), 1):
            if self._keep is None or self._keep(line):
                yield Pair(line, _tidy(source), _tidy(target))


def _list_counts(left_out: Mapping[str, int]) -> str:
    most_first = sorted(left_out.items(), key=lambda item: -item[1])
    return ", ".join(f"{count:,} {reason}" for reason, count in most_first)


def _tidy(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip()


def _read_aligned(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    sources, targets = file_lines(source), file_lines(target)
    for number, (source_line, target_line) in enumerate(zip_longest(sources, targets), 1):
        if source_line is None:
            raise _unequal(source, target, number, targets)
        if target_line is None:
            raise _unequal(target, source, number, sources)
        yield source_line, target_line


def _unequal(shorter: Path, longer: Path, first_odd: int, rest: Iterable[str]) -> UserError:
    lines = first_odd + sum(1 for _ in rest)
    return UserError(
        f"{shorter} has {first_odd - 1:,} lines but {longer} has {lines:,}: "
        f"line {first_odd} of {longer.name} is the first without a partner"
    )


def _sides(row: Row | None) -> tuple[str, str]:
    return ("", "") if row is None else (row.cells[0], row.cells[1])
