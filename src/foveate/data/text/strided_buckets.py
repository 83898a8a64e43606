"""Buckets of a text with too many rows to hold a record of each in memory."""

from collections.abc import Iterator
from typing import Any

from foveate.data.batching import Batching
from foveate.data.buckets import Bucket, Buckets, OneBucket
from foveate.data.dataset import Dataset

MOST_ROWS = 2**18
"""Rows of a bucket."""


def text_buckets(dataset: Dataset[Any], batching: Batching[Any], report: str = "") -> Buckets:
    """One bucket, or several where the rows of the text are many."""
    few = len(dataset) <= MOST_ROWS
    return OneBucket(dataset, batching, report) if few else StridedBuckets(dataset, batching, report)


class StridedBuckets:
    """Each bucket has every n-th row, so that it is like the whole text; it is counted anew each time."""

    def __init__(self, dataset: Dataset[Any], batching: Batching[Any], report: str) -> None:
        self._dataset, self._batching, self.report = dataset, batching, report
        self.largest = max((bucket.largest for bucket in self), key=lambda largest: largest[0])

    def __iter__(self) -> Iterator[Bucket[Any]]:
        for number in range(len(self)):
            yield from OneBucket(self._dataset.strided(number, len(self)), self._batching)

    def __len__(self) -> int:
        return -(-len(self._dataset) // MOST_ROWS)
