"""Who tells the user of an error that ends a training: one of its processes, not each."""

import threading

from torch.distributed import Store

from foveate.errors import UserError
from foveate.training.parallel.launch import process_info

_lock = threading.Lock()
_chosen: bool | None = None


def claim(store: Store | None) -> bool:
    """Make this process the one that speaks, if none was before; whether that came to be by this call.

    Without a store each process speaks for itself.
    """
    global _chosen
    with _lock:
        if _chosen is not None:
            return False
        try:
            _chosen = store is None or store.add("foveate/spoken", 1) == 1
        except RuntimeError:  # whoever kept the store is gone
            _chosen = True
        return _chosen


def be_silent() -> None:
    """All is said, here or by another process."""
    global _chosen
    with _lock:
        _chosen = False


def reports_errors(own: bool = False) -> bool:
    """Whether this process shall tell the user why it ends.

    Before processes know of each other, what one finds wrong (a flag, a file) all of its machine find: there the first
    one speaks. What is a process' `own` (its GPU, its memory) it tells by itself.
    """
    if _chosen is not None:
        return _chosen
    try:
        here = process_info()
    except UserError:
        return True
    return own or here is None or here.local_rank == 0
