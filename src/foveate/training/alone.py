"""One training to a folder: two would overwrite each other's checkpoints."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from foveate.bundle import clear_unfinished
from foveate.contracts import UserError
from foveate.training.parallel import Processes

LOCK = "checkpoints/.lock"


@contextmanager
def alone(folder: Path, processes: Processes) -> Iterator[None]:
    """Keep other trainings out of `folder` during the block; however its process ends, the next one gets in.

    Of several processes the main one keeps it for all. Raises UserError where a training is under way, or where the
    folder cannot be written to.
    """
    lock = FileLock(folder / LOCK)
    processes.on_main(lambda: _take(lock, folder))
    try:
        yield
    finally:
        lock.release()


def _take(lock: FileLock, folder: Path) -> None:
    try:
        (folder / LOCK).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"could not make the folder {folder}: {error.strerror}") from None
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise UserError(f"another training is under way in {folder}: wait for its end, or give another --out") from None
    except NotImplementedError:  # some network disks know no locks
        pass
    except OSError as error:
        raise UserError(f"could not write in {folder}: {error.strerror}") from None
    for place in (folder, (folder / LOCK).parent):  # what a training that was killed had not written to the end
        clear_unfinished(place)
