"""What a training reads: the batches of each epoch, one epoch after the other, and those of each step."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Protocol, runtime_checkable

from torch import Tensor

from foveate.contracts import Batch
from foveate.errors import UserError
from foveate.training.progress import Progress, learning_rate
from foveate.training.settings import Training


@runtime_checkable
class Batches(Protocol):
    """Training data: the same batches each time for the same epoch.

    `operator.length_hint` (`len`, for instance) may give the number of batches of the first epoch. A schedule that ends
    with the epochs needs it to decrease during the first epoch. Later epochs are assumed to be as long as the one
    before.

    Batches that depend on the model and are given several times each, one after the other, tell how often by `passes`:
    a training that is asked to stop does so before the next ones."""

    def epoch(self, number: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of an epoch (counted from 0) after the first `skip` ones."""


@runtime_checkable
class Remembering(Protocol):
    """Batches that depend on what happened in earlier ones: a checkpoint keeps what they remember."""

    def state(self) -> Mapping[str, Tensor]:
        """Returns the state that later batches depend on, beside the model."""

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a `state`."""


def step_batches(batches: Batches, progress: Progress, settings: Training) -> Iterator[tuple[float, list[Batch]]]:
    """The learning rate and the batches of each further step, until a limit or the end of patience."""
    stream = _stream(batches, progress, settings.epochs)
    while progress.done(settings) < 1 and not progress.patience_lost(settings):
        rate = learning_rate(settings, progress)  # before batches are taken, which changes `progress`
        group = list(islice(stream, settings.accumulate))
        if not group:
            return
        yield rate, group


def _stream(batches: Batches, progress: Progress, epochs: int | None) -> Iterator[Batch]:
    """All further batches, epoch after epoch; updates `progress`."""
    while epochs is None or progress.epoch < epochs:
        for batch in batches.epoch(progress.epoch, skip=progress.position):
            progress.position += 1
            yield batch
        if not progress.position:
            raise UserError("there is nothing to train on: an epoch has no batch")
        progress.epoch, progress.position, progress.epoch_length = progress.epoch + 1, 0, progress.position
