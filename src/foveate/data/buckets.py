"""Batches of any kind of examples."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from itertools import islice
from typing import Generic

import numpy as np

from foveate.contracts import Batch
from foveate.data.dataset import Dataset, E
from foveate.data.processor import Processor
from foveate.data.ragged import within_budget
from foveate.errors import UserError


class BucketedBatches(Generic[E]):
    """Batches of examples of like cost: rows times the greatest cost stay within a budget.

    The examples are shuffled, group by group where the processor names groups, and sorted by cost; the batches come in
    random order. The order and all that is
    random in a batch depend on the seed, the epoch and the batch's number alone, so that a training can go on from any
    batch. One batch is prepared while the one before is learned from.
    """

    def __init__(self, dataset: Dataset[E], processor: Processor[E], budget: int, seed: int, report: str = "") -> None:
        """`budget` counts what `processor.cost` counts; `report` says what was left out.

        Raises UserError for an example that is beyond the budget.
        """
        self._dataset, self._processor, self._budget, self._seed = dataset, processor, budget, seed
        self._prepared = processor.prepare(dataset)
        self.report = report or getattr(self._prepared, "report", "")
        self._costs = np.array([processor.cost(one) for one in self._prepared], np.int64)
        self._rows = np.array([processor.rows(one) for one in self._prepared], np.int64)
        groups = [processor.group(one) for one in self._prepared]
        self._groups = np.array(groups) if groups and None not in groups else None
        places = self._costs * self._rows
        if len(places) and places[greatest := int(places.argmax())] > budget:
            where = dataset[self._example(greatest)].place
            raise UserError(
                f"{where} takes {places[greatest]:,} places, but a batch has only {budget:,}: "
                f"raise --batch or --batch-tokens, or leave it out"
            )

    def resized(self, share: float) -> "BucketedBatches[E]":
        """The same examples in batches of this share of the budget, or of the greatest cost."""
        other = copy(self)
        other._budget = max(round(self._budget * share), int((self._costs * self._rows).max(initial=1)))
        return other

    def __length_hint__(self) -> int:
        return len(self._plan(0))

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, counted from 0, without the first `skip`."""
        plan = list(enumerate(self._plan(number)))[skip:]
        with ThreadPoolExecutor(1) as thread:
            ahead: Future[Batch] | None = None
            for place, rows in plan:
                following = thread.submit(self._batch, rows, number, place)
                if ahead is not None:
                    yield ahead.result()
                ahead = following
            if ahead is not None:
                yield ahead.result()

    def in_order(self) -> Iterator[Batch]:
        """All examples once, in their order, with nothing at random: to measure on."""
        for rows in self._cut(np.arange(len(self._costs))):
            yield self._named(self._processor.batch([self._prepared[row] for row in rows.tolist()], None), rows)

    def _plan(self, number: int) -> list[np.ndarray]:
        generator = np.random.default_rng((self._seed, number))
        order = generator.permutation(len(self._costs))
        if self._groups is not None:  # groups in random order, each with its members in random order
            order = order[np.argsort(generator.permutation(self._groups.max() + 1)[self._groups[order]], kind="stable")]
        if len(set(self._costs.tolist())) <= 1:
            return self._cut(order)
        groups = self._cut(order[np.argsort(self._costs[order], kind="stable")])
        return [groups[place] for place in generator.permutation(len(groups))]

    def _cut(self, order: np.ndarray) -> list[np.ndarray]:
        return within_budget(order, self._costs, self._budget, self._rows)

    def _batch(self, rows: np.ndarray, epoch: int, place: int) -> Batch:
        generator = np.random.default_rng((self._seed, epoch, place))
        return self._named(self._processor.batch([self._prepared[row] for row in rows.tolist()], generator), rows)

    def _named(self, batch: Batch, rows: np.ndarray) -> Batch:
        names = [self._dataset[self._example(row)].place for row in islice(rows.tolist(), 3)]
        more = f" and {len(rows) - len(names):,} more" if len(rows) > len(names) else ""
        return replace(batch, source=f"{', '.join(names)}{more} of {self._dataset.name}")

    def _example(self, row: int) -> int:
        """The number of the example that a row was made of, where one gives several, such as an image's captions."""
        examples = getattr(self._prepared, "examples", None)
        return row if examples is None else examples[row]
