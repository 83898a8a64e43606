"""Examples of any kind that are read again and again: images, sounds, texts, with what they are labelled with."""

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast, overload, runtime_checkable

import numpy as np

from foveate.data.splits import Ties, hold_out
from foveate.errors import UserError


@runtime_checkable
class Example(Protocol):
    """One example. Each kind of data has a dataclass of its own."""

    @property
    def place(self) -> str:
        """Where it stands, for messages: "line 7 of pairs.tsv", "cat.jpg"."""

    def content(self) -> bytes:
        """All that is learned from it. Two examples with the same content are the same to a model."""


E = TypeVar("E")
"""An `Example`, or of a parallel text two texts."""

Row = TypeVar("Row")


Note = str | Callable[[Iterable[Any]], str]
"""What is said of examples; a function where it depends on which they are, so that a part says it of its own."""


class _Chosen(Sequence[E]):
    """Some of the examples, which stay where they are."""

    def __init__(self, examples: Sequence[E], numbers: np.ndarray) -> None:
        self._examples, self._numbers = examples, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, number: int) -> E: ...

    @overload
    def __getitem__(self, number: slice) -> list[E]: ...

    def __getitem__(self, number: int | slice) -> E | list[E]:
        if isinstance(number, slice):
            return [self._examples[each] for each in self._numbers[number].tolist()]
        return self._examples[int(self._numbers[number])]


def without_empty(rows: Iterable[Row | None], lines: list[int | None]) -> Iterator[Row]:
    """The rows that are not empty. For each row, its number among them is added to `lines`; None for an empty one."""
    count = 0
    for row in rows:
        lines.append(None if row is None else count)
        if row is not None:
            count += 1
            yield row


class Dataset(Generic[E]):
    """Examples in a fixed order, with a name. What is large, such as pixels, an example reads when it is asked for."""

    def __init__(
        self,
        name: str,
        examples: Sequence[E],
        unit: str = "examples",
        notes: Sequence[Note] = (),
        lines: Sequence[int | None] | None = None,
    ) -> None:
        """`unit` says what the examples are, "images"; `notes` say what was left out, or count them; for `lines` see
        the property. By default each line of the input gave an example."""
        self.name, self.unit = name, unit
        self.notes: tuple[Any, ...] = tuple(notes)
        self._examples, self._from_lines = examples, lines

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, number: int) -> E:
        return self._examples[number]

    def __iter__(self) -> Iterator[E]:
        return iter(self._examples)

    @property
    def examples(self) -> Sequence[E]:
        """The examples as they are kept: in memory, or read from a file when they are asked for."""
        return self._examples

    @property
    def lines(self) -> Sequence[int | None]:
        """For each line of the input, or file of a folder, the number of its example; None where it gave none."""
        return range(len(self)) if self._from_lines is None else self._from_lines

    def only(self, numbers: Sequence[int], *notes: str) -> "Dataset[E]":
        """The examples with these numbers, and further notes about the others."""
        places = {number: place for place, number in enumerate(numbers)}
        lines = [None if number is None else places.get(number) for number in self.lines]
        chosen = _Chosen(self.examples, np.array(numbers, np.int64))
        return Dataset(self.name, chosen, self.unit, (*self.notes, *notes), lines)

    def map(self, change: Callable[[E], E]) -> "Dataset[E]":
        """The examples as `change` returns them."""
        return Dataset(self.name, [change(example) for example in self], self.unit, self.notes, self.lines)

    @property
    def report(self) -> str:
        """One line for the user: how many examples there are, and the notes."""
        notes = "; ".join(note if isinstance(note, str) else note(self) for note in self.notes)
        return f"{self.name}: {len(self):,} {self.unit}" + (f" ({notes})" if notes else "")

    def digest(self) -> str:
        """A few letters that are others for other examples, and for another order of them."""
        found = hashlib.blake2b()
        for example in self:
            content = cast(Example, example).content()
            found.update(len(content).to_bytes(8, "little") + content)
        return found.hexdigest()[:12]

    def hold_out(
        self,
        every: int,
        ties: Callable[[E], Ties] = lambda example: {},
        kinds: Callable[[E], Collection[Hashable]] | None = None,
        rare: bool = False,
    ) -> tuple["Dataset[E]", "Dataset[E]"]:
        """The examples without about one of `every`, and these: see `splits.hold_out`.

        Raises UserError where none can be held out.
        """
        cases = map(kinds, self) if kinds is not None else ()
        held, copies, notes = hold_out(map(ties, self), every, cases, rare)
        if held.all() or not held.any():
            raise UserError(f"{self.name}: too few different {self.unit} to hold some out; give --validation")
        if copies:
            notes = (f"{copies:,} copies of other {self.unit}, on the same side as these", *notes)
        return self._sides(held, notes)

    def _sides(self, held: np.ndarray, notes: Sequence[str]) -> tuple["Dataset[E]", "Dataset[E]"]:
        """The examples that are not held out, with further notes, and those that are."""
        rest, kept = (_Chosen(self._examples, np.flatnonzero(side)) for side in (~held, held))
        return (
            Dataset(self.name, rest, self.unit, (*self.notes, *notes)),
            Dataset(f"{self.name}, held out", kept, self.unit, [note for note in self.notes if callable(note)]),
        )

    def some(self, count: int) -> list[E]:
        """At most `count` of the examples, evenly from all over: a dataset may have an order."""
        return list(self.iterate_some(count))

    def iterate_some(self, count: int) -> Iterator[E]:
        """The same, read one after the other."""
        return (self._examples[number] for number in range(0, len(self), max(1, -(-len(self) // count))))

    def strided(self, number: int, of: int) -> "Dataset[E]":
        """Returns one of `of` parts: every `of`-th example, beginning at `number`."""
        return Dataset(self.name, _Chosen(self._examples, np.arange(number, len(self), of)), self.unit, self.notes)


@dataclass
class Prepared(Sequence[Any]):
    """Prepared values, and the number of the example of each: one that is damaged has none."""

    values: Any
    """A sequence, or an array."""
    examples: Sequence[int]
    report: str = ""
    """Names what was left out."""
    slow: bool = False
    """Whether making a batch of them takes long, as of files that are decoded whenever they are read."""

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, number: Any) -> Any:
        return self.values[number]
