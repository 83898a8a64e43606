"""Communication between the processes of a training, besides gradients: a few numbers at each step, and failures.

`Processes` is a single process, `group.Group` one of several, with the same interface. The main process, of rank 0,
prints, writes files and validates; the others wait for it. Messages are never pickled.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TypeVar

from torch import Tensor

from foveate.contracts import Batch

Json = TypeVar("Json")


class Processes:
    """A single process."""

    rank, size, local_size = 0, 1, 1

    splitting = 1
    """Processes that split each layer among them, and have the same examples."""

    @property
    def groups(self) -> int:
        """The groups of processes that split a layer. Each group has its own examples."""
        return self.size // self.splitting

    @property
    def leader(self) -> int:
        """The first process of this one's group, whose random numbers the group has."""
        return self.rank - self.rank % self.splitting

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Nothing to clean up."""

    def watch(self) -> AbstractContextManager:
        """A context that notices the end of other processes and tells them about an error here."""
        return nullcontext()

    @property
    def main(self) -> bool:
        """Whether this process prints, writes and validates."""
        return self.rank == 0

    @property
    def broken(self) -> bool:
        """Whether another process has ended early."""
        return False

    def share(self, batch: Batch) -> Batch:
        """This process' share of a batch."""
        return batch

    def total(self, values: Sequence[float]) -> list[float]:
        """The sums of values over processes."""
        return list(values)

    def greatest(self, values: Sequence[float]) -> list[float]:
        """The greatest values over processes."""
        return list(values)

    def on_main(self, work: Callable[[], Json]) -> Json:
        """Run `work` in the main process; returns its result (JSON values) or raises its UserError in every process."""
        return work()

    def broadcast(self, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """The tensors of the main process, on the CPU, one by one in every process."""
        yield from tensors.items()

    def gather(self, tensors: Mapping[str, Tensor]) -> list[Mapping[str, Tensor]]:
        """The tensors of all processes, by rank. Names and shapes must be equal."""
        return [tensors]

    def synchronize(self, tensors: Iterable[Tensor]) -> None:
        """Copy the values of the main process' tensors to those of all processes, in place."""
