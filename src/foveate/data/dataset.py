"""Examples of any kind that are read again and again: images, sounds, texts, with what they are labelled with."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar, runtime_checkable

from foveate.data.sides import one_in, together
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

    def held_out(self, every: int) -> tuple["Dataset[E]", "Dataset[E]"]:
        """The examples without one of `every`, and these. Raises UserError where none can be held out."""
        return self.held_out_of_kinds(every)

    def held_out_of_kinds(
        self, every: int, kind: Callable[[E], str] | None = None
    ) -> tuple["Dataset[E]", "Dataset[E]"]:
        """As `held_out`; the last example of a kind, such as a label, is never held out."""
        drawn = one_in(every)
        left = Counter(map(kind, self)) if kind else Counter()
        held, rest = [], []
        for number, example in enumerate(self, 1):
            alone = kind is not None and left[kind(example)] == 1
            if drawn(number) and not alone:
                held.append(example)
                if kind:
                    left[kind(example)] -= 1
            else:
                rest.append(example)
        if not held or not rest:
            raise UserError(f"{self.name}: too few {self.unit} to hold some out; give --validation")
        return (
            Dataset(self.name, rest, self.unit, self.notes),
            Dataset(f"{self.name}, held out", held, self.unit),
        )

    def held_out_together(self, every: int, text: Callable[[E], str]) -> tuple["Dataset[E]", "Dataset[E]"]:
        """As `held_out`; examples with the same text, in any letter case, are on one side."""
        drawn = together(map(text, self), every)
        sides: tuple[list[E], list[E]] = ([], [])
        for number, example in enumerate(self, 1):
            sides[drawn(number)].append(example)
        if not all(sides):
            raise UserError(f"{self.name}: its {self.unit} repeat, so that none can be held out; give text to validate")
        rest, held = sides
        return Dataset(self.name, rest, self.unit, self.notes), Dataset(f"{self.name}, held out", held, self.unit)

    def some(self, count: int) -> list[E]:
        """At most `count` of the examples, evenly from all over: a dataset may have an order."""
        return list(self._examples[:: max(1, -(-len(self) // count))])
