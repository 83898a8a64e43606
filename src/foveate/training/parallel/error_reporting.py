"""Which of several processes reports an error that ends a training, so that it is printed once."""

import threading

from torch.distributed import Store

from foveate.errors import UserError
from foveate.training.parallel.launch import process_info

_lock = threading.Lock()
_chosen: bool | None = None


def claim(store: Store | None) -> bool:
    """Try to become the process that reports the error; True if this call succeeded.

    Without a store, each process reports its own errors.
    """
    global _chosen
    with _lock:
        if _chosen is not None:
            return False
        try:
            _chosen = store is None or store.add("foveate/reported", 1) == 1
        except RuntimeError:  # the process of the store has ended
            _chosen = True
        return _chosen


def silence() -> None:
    """Do not report: this or another process has reported the error."""
    global _chosen
    with _lock:
        _chosen = False


def reports_errors(own: bool = False) -> bool:
    """Returns whether this process reports the error that ends it.

    Before processes communicate, all processes of a machine find the same errors (a flag, a file), and the first one
    reports. A process reports an error of its `own` (its GPU, its memory) by itself.
    """
    if _chosen is not None:
        return _chosen
    try:
        here = process_info()
    except UserError:
        return True
    return own or here is None or here.local_rank == 0
