"""A dataset of text that is read anew at each iteration, so that it may be larger than memory."""

from abc import abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import Any, Protocol, runtime_checkable

from foveate.data.dataset import Dataset
from foveate.data.text.files import examples_digest


@runtime_checkable
class Counts(Protocol):
    """The counts of one pass over a text."""

    @property
    def kept(self) -> int:
        """Examples."""


class StreamedText(Dataset[Any]):
    """A text says how it is read, counted and held out of; its examples are tuples of strings and line numbers."""

    @abstractmethod
    def __iter__(self) -> Iterator[Any]: ...

    @abstractmethod
    def check(self) -> Counts:
        """Read everything once (and only once, however often this is called) and count. Raises UserError."""

    def __len__(self) -> int:
        return self.check().kept

    def __getitem__(self, number: int) -> Any:
        raise TypeError(f"{self.name} is read from its beginning: iterate over it")

    @property
    def examples(self) -> list[Any]:
        return list(self)

    def digest(self) -> str:
        return examples_digest(self)

    def some(self, count: int) -> list[Any]:
        return list(islice(self, None, None, max(1, -(-len(self) // count))))
