"""The user's cache: what was fetched once stays there, whole or not at all."""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import platformdirs

from foveate.errors import UserError
from foveate.files import workshop

BeforeFetch = Callable[[Path], None]
"""Called with the place in the cache before something is fetched into it."""


def cache_folder() -> Path:
    """Returns the folder of fetched data: $FOVEATE_CACHE, or the platform's place for a user's caches."""
    return Path(os.environ.get("FOVEATE_CACHE") or platformdirs.user_cache_dir("foveate")).absolute()


_fetches: ContextVar[bool] = ContextVar("fetches", default=True)
"""Whether what is not there yet is fetched."""


@contextmanager
def without_fetching() -> Iterator[None]:
    """In the block, data that were not fetched before are a UserError."""
    before = _fetches.set(False)
    try:
        yield
    finally:
        _fetches.reset(before)


def fetched(name: str, fetch: Callable[[Path], None], before_fetch: BeforeFetch) -> Path:
    """The folder `name` of the cache; when it is not there, `fetch` fills an empty folder that then takes its place.

    A fetch that fails or is broken off leaves nothing behind that a later one would take for whole. Of several
    processes that want the same, such as those of one training, one fetches it and the others wait.
    """
    place = cache_folder() / name
    if place.is_dir():
        return place
    if not _fetches.get():
        raise UserError(f"{name} was not fetched yet")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _alone(place.parent / f".{name}.lock"):
            if not place.is_dir():
                before_fetch(place)
                _fill(place, fetch)
    except OSError as error:
        if not place.is_dir():  # where there are no locks, another process may have been faster
            reason = error.strerror or error
            raise UserError(f"cannot write {place}: {reason}; FOVEATE_CACHE can name another folder") from None
    return place


def _fill(place: Path, fetch: Callable[[Path], None]) -> None:
    with workshop(place.parent) as temporary:
        filled = temporary / place.name
        filled.mkdir()
        fetch(filled)
        filled.rename(place)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Wait until no other process has the lock, and hold it during the block."""
    from filelock import FileLock  # only a fetch needs it, and asyncio with it

    held = FileLock(lock)
    with contextlib.suppress(NotImplementedError):  # some network disks know no locks
        held.acquire()
    try:
        yield
    finally:
        held.release()


@contextmanager
def undamaged(folder: Path) -> Iterator[None]:
    """Raises UserError where fetched data cannot be read; its message says how to fetch it again."""
    try:
        yield
    except (OSError, LookupError, ValueError) as error:
        raise UserError(f"{folder} is damaged: {error}; remove it to fetch it again") from None
