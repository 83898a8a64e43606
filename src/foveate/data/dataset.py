"""Examples of any kind that are read again and again: images, sounds, texts, with what they are labelled with."""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar, overload, runtime_checkable

import numpy as np

from foveate.data.splits import one_in, together
from foveate.errors import UserError


@runtime_checkable
class Example(Protocol):
    """One example. Each kind of data has a dataclass of its own."""

    @property
    def place(self) -> str:
        """Where it stands, for messages: "line 7 of pairs.tsv", "cat.jpg"."""

    def content(self) -> bytes:
        """All that is learned from it. Two examples with the same content are the same to a model."""


E = TypeVar("E", bound=Example)


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


class Dataset(Generic[E]):
    """Examples in a fixed order, with a name. What is large, such as pixels, an example reads when it is asked for."""

    def __init__(self, name: str, examples: Sequence[E], unit: str = "examples", notes: Sequence[str] = ()) -> None:
        """`unit` says what the examples are, "images"; `notes` say for instance what was left out, and why."""
        self.name, self.unit, self.notes = name, unit, tuple(notes)
        self._examples = examples

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
    def report(self) -> str:
        """One line for the user: how many examples there are, and the notes."""
        notes = f" ({'; '.join(self.notes)})" if self.notes else ""
        return f"{self.name}: {len(self):,} {self.unit}{notes}"

    def digest(self) -> str:
        """A few letters that are others for other examples, and for another order of them."""
        found = hashlib.blake2b()
        for example in self:
            content = example.content()
            found.update(len(content).to_bytes(8, "little") + content)
        return found.hexdigest()[:12]

    def hold_out(
        self,
        every: int,
        group: Callable[[E], Hashable] | None = None,
        kinds: Callable[[E], Collection[Hashable]] = lambda example: (),
    ) -> tuple["Dataset[E]", "Dataset[E]"]:
        """The examples without one of `every`, and these. Raises UserError where none can be held out.

        Examples of one group, such as copies of a file, are on one side: the first of them decides. Where they are more
        than one in `every` by themselves, each is drawn for itself. The last example of a kind, such as a label, is
        never held out.
        """
        groups: dict[Hashable, list[int]] = {}
        for number, example in enumerate(self):
            groups.setdefault(number if group is None else group(example), []).append(number)
        copies = len(self) - len(groups)
        cases = [kinds(example) for example in self]
        left = Counter(kind for own in cases for kind in own)
        drawn, held = one_in(every), np.zeros(len(self), bool)
        for members in groups.values():
            large = len(members) > 1 and len(members) * every > max(every, len(self))
            for part in [[number] for number in members] if large else [members]:
                counts = Counter(kind for number in part for kind in cases[number])
                if drawn(part[0] + 1) and all(left[kind] > count for kind, count in counts.items()):
                    held[part] = True
                    left -= counts
        rest, kept = self._parts(held, f"too few {self.unit} to hold some out; give --validation")
        if copies:
            rest.notes = (*rest.notes, f"{copies:,} copies of other {self.unit}, on the same side as these")
        return rest, kept

    def hold_out_groups(self, every: int, text: Callable[[E], str]) -> tuple["Dataset[E]", "Dataset[E]"]:
        """The examples without one of `every`, and these; equal texts, in any letter case, are on one side."""
        drawn = together(map(text, self), every)
        held = np.fromiter(map(drawn, range(1, len(self) + 1)), bool, len(self))
        return self._parts(held, f"its {self.unit} repeat, so that none can be held out; give text to validate")

    def hold_out_wholes(self, every: int, whole: Callable[[E], str]) -> tuple["Dataset[E]", "Dataset[E]"] | None:
        """As `hold_out`; one in `every` of the wholes that examples are parts of, such as documents, with all its
        parts. None where there are not this many wholes."""
        numbers = dict[str, int]()
        own = np.fromiter((numbers.setdefault(whole(one), len(numbers) + 1) for one in self), np.int64, len(self))
        if len(numbers) < every:
            return None
        drawn = one_in(every)
        held = np.array([False, *map(drawn, range(1, len(numbers) + 1))])[own]
        return self._parts(held, f"too few {self.unit} to hold some out; give --validation")

    def _parts(self, held: np.ndarray, none: str) -> tuple["Dataset[E]", "Dataset[E]"]:
        """The examples that are not held out, and those that are; UserError where all are on one side."""
        if held.all() or not held.any():
            raise UserError(f"{self.name}: {none}")
        rest, kept = (_Chosen(self._examples, np.flatnonzero(side)) for side in (~held, held))
        return Dataset(self.name, rest, self.unit, self.notes), Dataset(f"{self.name}, held out", kept, self.unit)

    def some(self, count: int) -> list[E]:
        """At most `count` of the examples, evenly from all over: a dataset may have an order."""
        return list(self.iterate_some(count))

    def iterate_some(self, count: int) -> Iterator[E]:
        """The same, read one after the other."""
        return (self._examples[number] for number in range(0, len(self), max(1, -(-len(self) // count))))

    def strided(self, number: int, of: int) -> "Dataset[E]":
        """Returns one of `of` parts: every `of`-th example, beginning at `number`."""
        return Dataset(self.name, _Chosen(self._examples, np.arange(number, len(self), of)), self.unit, self.notes)
