"""One training to a folder, and nothing else: two would overwrite each other's checkpoints."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from foveate.bundle import CHECKPOINTS, CONFIG, WEIGHTS
from foveate.errors import UserError
from foveate.files import check_writable, clear_unfinished
from foveate.training.parallel import Processes

LOCK = f"{CHECKPOINTS}/.lock"

METRICS = "metrics.jsonl"
"""The record of a training, beside its checkpoints."""


def check_folder(folder: Path, files: Iterable[str] = (METRICS,)) -> None:
    """Raise UserError for a folder that a training cannot write to, and one with `files` that are not of a training.

    Those that a training has written which was killed before its first checkpoint are its own.
    """
    if not _is_utf8(folder):
        raise UserError(f"{str(folder)!r} is no name that all programs can read: name a folder in UTF-8")
    check_writable(folder)
    if any((folder / CHECKPOINTS).glob("step-*.safetensors")):
        return
    if (folder / CONFIG).exists() and (folder / WEIGHTS).exists():
        raise UserError(
            f"{folder} holds a trained model without its checkpoints: train in another folder, or remove it"
        )
    foreign = [name for name in (CONFIG, *files) if os.path.lexists(folder / name)]
    if foreign and not (folder / LOCK).exists():
        raise UserError(f"{folder} holds {foreign[0]}, which is of no training of foveate's: train in another folder")


def _is_utf8(path: Path) -> bool:
    try:
        return bool(str(path).encode())
    except UnicodeEncodeError:
        return False


@contextmanager
def lock_folder(folder: Path, processes: Processes) -> Iterator[None]:
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
    check_folder(folder)
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
