"""Batches of any kind of examples, which are in memory or stream through it."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import length_hint
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from foveate.contracts import Batch
from foveate.data.batching import Batching
from foveate.data.dataset import Dataset, E
from foveate.data.ragged import Numbers, within_budget
from foveate.data.workers import prepare_by_processes
from foveate.errors import UserError

_FOUR = np.dtype((np.int32, 4))

S = TypeVar("S", bound=Sequence[Any])


class Bucket(Generic[S]):
    """Prepared examples that are shuffled, sorted by cost and cut into batches together."""

    def __init__(self, prepared: S, batching: Batching[Any], name: str, place: Callable[[int], str]) -> None:
        """`name` is that of the data, and `place` gives the place of each row in it, for messages."""
        self.prepared = prepared
        self._batching, self._name, self._place = batching, name, place
        counts = (batching.cost, batching.tie_break, batching.rows, batching.group)
        sizes = np.fromiter(([count(one) for count in counts] for one in prepared), _FOUR, len(prepared))
        self._costs, self._ties, self._rows, self._groups = sizes.T.copy()
        self._alike = bool((sizes[:, :2] == sizes[:1, :2]).all())

    @property
    def largest(self) -> tuple[int, str]:
        """Places that an example takes of a batch at most, and which one it is."""
        places = self._costs.astype(np.int64) * self._rows
        return (int(places.max()), self._place(int(places.argmax()))) if len(places) else (1, "nothing")

    def shuffled(self, budget: int, generator: np.random.Generator) -> list[Numbers]:
        """The rows of each batch. Groups are in random order, and so are the rows of a group. Where rows are repeated,
        as many of them are left out, others each time."""
        order, repeats = generator.permutation(len(self._costs)), self._batching.repeats
        order = order[: -(-len(order) // repeats)].repeat(repeats)[: len(order)]
        groups = generator.permutation(self._groups.max(initial=0) + 1)[self._groups[order]]
        order = order[np.argsort(groups, kind="stable")]
        if self._alike:
            return self._split_order(order, budget)
        batches = self._split_order(order[np.lexsort((self._ties[order], self._costs[order]))], budget)
        return [batches[place] for place in generator.permutation(len(batches))]

    def in_order(self, budget: int) -> list[Numbers]:
        """The rows of each batch, one after the other."""
        return self._split_order(np.arange(len(self._costs)), budget)

    def batch(self, rows: Numbers, generator: np.random.Generator | None) -> Batch:
        """These rows, changed at random by `generator` where one is given."""
        numbers = rows.tolist()
        names = [self._place(row) for row in numbers[:3]]
        more = f" and {len(numbers) - len(names):,} more" if len(numbers) > len(names) else ""
        batch = self._batching.batch([self.prepared[row] for row in numbers], generator)
        return replace(batch, source=f"{', '.join(names)}{more} of {self._name}")

    def _split_order(self, order: Numbers, budget: int) -> list[Numbers]:
        return within_budget(order, self._costs, budget, self._rows)


@runtime_checkable
class Buckets(Protocol):
    """The buckets of a dataset. `operator.length_hint` gives their number if it is known."""

    @property
    def largest(self) -> tuple[int, str]:
        """Places that an example takes of a batch at most, and a name for such an example."""

    @property
    def report(self) -> str:
        """One line for the user: what was left out."""

    def __iter__(self) -> Iterator[Bucket[Any]]: ...


class OneBucket:
    """All examples of a dataset in one bucket."""

    def __init__(self, dataset: Dataset[E], batching: Batching[E], report: str = "") -> None:
        prepared = batching.prepare(dataset)
        # one example may give several rows, such as an image with its captions, or none
        examples = getattr(prepared, "examples", range(len(prepared)))
        self._bucket = Bucket(prepared, batching, dataset.name, lambda row: cast(Any, dataset[examples[row]]).place)
        self.report = report or getattr(prepared, "report", "")
        self.slow: bool = getattr(prepared, "slow", False)
        self.largest = self._bucket.largest

    def __iter__(self) -> Iterator[Bucket[Any]]:
        yield self._bucket

    def __len__(self) -> int:
        return 1


class BucketedBatches:
    """Batches of examples of like cost: rows times the greatest cost stay within a budget.

    The examples of a bucket are shuffled and sorted by cost; its batches come in random order. The order and all that
    is random in a batch depend on the seed, the epoch and the batch's number alone, so that a training can go on from
    any batch. One batch is prepared while the one before is learned from, or several by other processes.
    """

    def __init__(
        self, buckets: Buckets, budget: int, seed: int, choose_workers: Callable[[bool], int] = lambda slow: 0
    ) -> None:
        """`budget` counts what `Batching.cost` counts. `choose_workers` says how many processes prepare batches of
        one bucket, given whether that is slow; for 0 a thread does.

        Raises UserError for an example that is beyond the budget.
        """
        self._buckets, self._budget, self._seed = buckets, budget, seed
        self._workers = choose_workers(buckets.slow) if isinstance(buckets, OneBucket) else 0
        largest, name = buckets.largest
        if largest > budget:
            raise UserError(
                f"{name} takes {largest:,} places, but a batch has only {budget:,}: raise --batch, or leave it out"
            )

    @property
    def report(self) -> str:
        """One line for the user: what was left out."""
        return self._buckets.report

    def resized(self, share: float) -> "BucketedBatches":
        """The same examples in batches of this share of the budget, or of the largest example."""
        other = copy(self)
        other._budget = max(round(self._budget * share), self._buckets.largest[0])
        return other

    def __length_hint__(self) -> int:
        """The batches of the first epoch; unknown if the buckets are not counted."""
        return sum(1 for _ in self._plan(0)) if length_hint(self._buckets) else NotImplemented

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, counted from 0, without the first `skip`, which are not built."""
        plan = islice(enumerate(self._plan(number)), skip, None)
        if self._workers:
            (bucket,) = self._buckets
            numbered = ((place, rows) for place, (_, rows) in plan)  # what is sent to the processes
            yield from prepare_by_processes(partial(self._prepare, number, bucket), numbered, self._workers)
            return
        with ThreadPoolExecutor(1) as thread:
            ahead: Future[Batch] | None = None
            for place, (bucket, rows) in plan:
                following = thread.submit(self._prepare, number, bucket, (place, rows))
                if ahead is not None:
                    yield ahead.result()
                ahead = following
            if ahead is not None:
                yield ahead.result()

    def _prepare(self, number: int, bucket: Bucket[Any], planned: tuple[int, Numbers]) -> Batch:
        """A batch of an epoch by its place in it and its rows."""
        place, rows = planned
        return bucket.batch(rows, np.random.default_rng((self._seed, number, place)))

    def in_order(self) -> Iterator[Batch]:
        """All examples once, in their order, with nothing at random: to measure on."""
        for bucket in self._buckets:
            for rows in bucket.in_order(self._budget):
                yield bucket.batch(rows, None)

    def _plan(self, number: int) -> Iterator[tuple[Bucket[Any], Numbers]]:
        for index, bucket in enumerate(self._buckets):
            for rows in bucket.shuffled(self._budget, np.random.default_rng((self._seed, number, index))):
                yield bucket, rows
