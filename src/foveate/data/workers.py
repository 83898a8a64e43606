"""Processes that prepare the batches of a training, which get them in their order."""

import ctypes
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from foveate.contracts import Batch
from foveate.errors import UserError, at_least

END_WITH_PARENT = 1
"""The number of the request to Linux to send a process a signal when its parent ends."""


def check_workers(workers: int) -> None:
    """Raise UserError where a process cannot share its data with others."""
    at_least(0, "workers", workers)
    if workers and sys.platform == "win32":
        raise UserError(f"workers is {workers}, but this system cannot fork processes: leave it out")


def prepare_by_processes(
    prepare: Callable[[Any], Batch], planned: Iterable[Any], workers: int, ahead: int = 2
) -> Iterator[Batch]:
    """What `prepare` gives for each of the planned batches, `ahead` of them at most waiting for each process.

    The processes are forked, so that nothing is copied that `prepare` holds. Raises UserError as `prepare` does.
    """
    from torch.utils.data import DataLoader  # takes a tenth of a second

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)  # the user asked for as many
        loader: Any = DataLoader(
            _Prepared(prepare),  # type: ignore[arg-type]
            sampler=planned,
            batch_size=None,
            collate_fn=_as_it_is,
            num_workers=workers,
            multiprocessing_context="fork",
            prefetch_factor=ahead,
            worker_init_fn=_begin,
            generator=torch.Generator(),  # the training's own is left as it is
        )
        batches: Iterator[Any] = iter(loader)
    for batch in batches:
        if isinstance(batch, UserError):
            raise batch
        yield batch


class _Prepared:
    """Batches by what is planned of them. An error is given back, so that it is raised without a trace."""

    def __init__(self, prepare: Callable[[Any], Batch]) -> None:
        self.prepare = prepare

    def __getitem__(self, planned: Any) -> Any:
        try:
            return self.prepare(planned)
        except UserError as error:
            return error


def _as_it_is(batch: Any) -> Any:
    return batch


def _begin(_: int) -> None:
    """Leave signals to the training, and end with it: whoever kills it could not go on while the folder is locked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(END_WITH_PARENT, int(signal.SIGKILL))
