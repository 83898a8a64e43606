"""A lock on the folder of a training: two trainings would overwrite each other's checkpoints."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from foveate.errors import UserError
from foveate.files import check_utf8, check_writable, clear_unfinished, real_path
from foveate.run_dir import CHECKPOINTS, CONFIG, WEIGHTS
from foveate.training.parallel import Processes

LOCK = f"{CHECKPOINTS}/.lock"

_trains_in: set[Path] = set()
"""The folders that trainings of this process hold."""

METRICS = "metrics.jsonl"
"""The metrics log of a training, next to its checkpoints."""


def check_folder(folder: Path, files: Iterable[str] = (METRICS,)) -> None:
    """Raise UserError if a training cannot write to the folder, or if it has `files` that no training wrote.

    Files of a training that was killed before its first checkpoint are accepted.
    """
    check_utf8(folder)
    check_writable(folder)
    if any((folder / CHECKPOINTS).glob("step-*.safetensors")):
        return
    if (folder / CONFIG).exists() and (folder / WEIGHTS).exists():
        raise UserError(f"{folder} has a trained model without checkpoints: train in another folder, or remove it")
    foreign = [name for name in (CONFIG, *files) if os.path.lexists(folder / name)]
    if foreign and not (folder / LOCK).exists():
        raise UserError(f"{folder} has {foreign[0]}, which foveate did not write: train in another folder")


@contextmanager
def lock_folder(folder: Path, processes: Processes) -> Iterator[None]:
    """Lock `folder` for one training. The lock is released when the process exits.

    Of several processes, the main one holds the lock. Raises UserError if another training is running, or if the folder
    cannot be written to.
    """
    lock = FileLock(folder / LOCK)
    processes.on_main(lambda: _take(lock, folder))
    _trains_in.add(real_path(folder))
    try:
        yield
    finally:
        _trains_in.discard(real_path(folder))
        lock.release()


@contextmanager
def lock_to_save(folder: Path) -> Iterator[None]:
    """Keep trainings out of `folder` while a model is saved there. Raises UserError if one is running.

    The training that holds the lock may save. A folder that no training used has no lock, and gets none.
    """
    if real_path(folder) in _trains_in or not (folder / LOCK).exists():
        yield
        return
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise UserError(f"a training is running in {folder}: save into another folder") from None
    except (NotImplementedError, OSError):  # no locks there, or a folder of somebody else's, which saving will tell
        pass
    try:
        yield
    finally:
        lock.release()


def _take(lock: FileLock, folder: Path) -> None:
    check_folder(folder)
    try:
        (folder / LOCK).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"could not create the folder {folder}: {error.strerror}") from None
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise UserError(f"another training is running in {folder}: wait for its end, or choose another --out") from None
    except NotImplementedError:  # some network file systems have no locks
        pass
    except OSError as error:
        raise UserError(f"could not write to {folder}: {error.strerror}") from None
    for place in (folder, (folder / LOCK).parent):  # temporary files of a killed training
        clear_unfinished(place, alone=True)
