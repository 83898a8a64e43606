"""Files that are written whole or not at all, and JSON."""

import json
import math
import os
import re
import shutil
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from typing import Any

from foveate import limits
from foveate.errors import UserError

try:
    import fcntl
except ImportError:  # Windows locks no folders
    fcntl = None  # type: ignore[assignment]

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""How JSON writes a half of a surrogate pair. Without the other one it cannot be written into any file."""

_EXPONENT = re.compile(r"\d[eE]\+?\d{3}")
"""What a number has that may be read as infinite."""

_LIMITS = {
    "config.json": limits.check_sizes,
    "processor.json": limits.check_formats,
    "preprocessor_config.json": limits.check_preprocessor,
    "processor_config.json": limits.check_preprocessor,
    "tokenizer_config.json": limits.check_tokens,
    "special_tokens_map.json": limits.check_tokens,
}
"""What looks at the values of a model's files before anything is made of them, or another library reads them."""

UNFINISHED = ".foveate-unfinished-"
"""How the names of folders begin in which files are being written."""


def check_writable(folder: Path) -> None:
    """Raise UserError where nothing can be written into a folder, which need not be there yet: a file is tried."""
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    if not there.is_dir():
        raise UserError(f"cannot write in {folder}: {there} is not a folder")
    try:
        with TemporaryFile(dir=there):
            pass
    except OSError:
        raise UserError(f"cannot write in {folder}: {there} does not allow it") from None


def check_utf8(path: Path) -> None:
    """Raise UserError for a path that is not UTF-8, which no file of JSON can note."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UserError(f"the path {str(path)!r} is not valid UTF-8: rename it, or choose another one") from None


def real_path(path: Path | str) -> Path:
    """The path without links. Raises UserError for a link that leads to itself."""
    found = Path(os.path.realpath(path))
    if os.path.islink(found):
        raise UserError(f"{path} is a link that leads to itself")
    return found


def check_ending(path: Path, ending: str) -> None:
    """Raise UserError for a file whose name does not end as its format does."""
    if path.suffix.lower() != ending:
        raise UserError(f"{path} must end in {ending}")


def check_place(path: Path) -> None:
    """Raise UserError for a file that cannot be there: before the work, not after it."""
    real_path(path)
    if path.exists() and not path.is_file():
        raise UserError(f"could not write {path}: it is {'a folder' if path.is_dir() else 'not a regular file'}")
    if not path.parent.is_dir():
        raise UserError(f"could not write {path}: there is no folder {path.parent}")
    check_writable(path.parent)


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which becomes `path` when the block ends well, and vanishes when it does not.

    Raises UserError where the disk refuses, and for what is not a file, such as a device; what was at `path` is then
    still there.
    """
    try:
        real_path(path)
        if path.exists() and not path.is_file():
            raise UserError(f"could not write {path}: it is {'a folder' if path.is_dir() else 'not a regular file'}")
        path.parent.mkdir(parents=True, exist_ok=True)
        # A folder, because some writers put a temporary file beside theirs.
        with workshop(path.parent) as place:
            temporary = place / path.name
            yield temporary
            _to_disk(temporary)
            os.replace(temporary, path)
            with suppress(OSError):  # some network disks cannot do this; the file is whole all the same
                _to_disk(path.parent)
    except Exception as error:
        reason = _refusal(error)
        if reason is None:
            raise
        raise UserError(f"could not write {path.name} in {path.parent}: {reason}") from None


@contextmanager
def workshop(folder: Path) -> Iterator[Path]:
    """A temporary folder in another one, for the block. Those that killed processes left there are removed, once for
    each process."""
    if folder not in _cleared:
        _cleared.add(folder)
        clear_unfinished(folder)
    place, lock = _locked_workshop(folder)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if lock is not None:
            os.close(lock)


_cleared: set[Path] = set()


def clear_unfinished(folder: Path, alone: bool = False) -> None:
    """Remove the temporary folders in a folder whose processes were killed. Where there are no locks, that is known
    only if this process is `alone` at work in the folder."""
    for place in folder.glob(f"{UNFINISHED}*"):
        try:
            lock = _lock(place)
        except OSError:  # it is in use, or has just been removed
            continue
        if lock is not None or alone:
            shutil.rmtree(place, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _locked_workshop(folder: Path) -> tuple[Path, int | None]:
    """A new temporary folder and the lock on it, before another process takes it for one that was left behind."""
    while True:
        place = Path(mkdtemp(prefix=UNFINISHED, dir=folder))
        with suppress(BlockingIOError, FileNotFoundError):
            lock = _lock(place)
            if place.is_dir():
                return place, lock


def _lock(place: Path) -> int | None:
    """A lock on a folder, which ends with the process; None where there are no locks.

    Raises BlockingIOError where another process has it.
    """
    if fcntl is None:
        return None
    handle = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:  # some network disks have none
        os.close(handle)
        return None
    return handle


def is_file(path: Path) -> bool:
    """Returns whether there is a file. There is none of a name that no file can have, as one of 5,000 letters."""
    try:
        return path.is_file()
    except OSError:
        return False


def read_json(path: Path, most: int = limits.FILE) -> dict[str, Any]:
    """The JSON object in `path`, of at most `most` bytes. Raises UserError where it is damaged, or beyond the limits
    of `foveate.limits`."""
    value = read_json_value(path, most)
    if not isinstance(value, dict):
        raise UserError(f"{path} is damaged: a JSON object was expected, not {type(value).__name__}")
    return value


def read_json_value(path: Path, most: int = limits.FILE) -> Any:
    """The JSON value in `path`, with the same limits and errors."""
    value = parse_json(read_text(path, most), path)
    if path.name in _LIMITS and isinstance(value, dict):
        _LIMITS[path.name](value, path)
    return value


def read_text(path: Path, most: int = limits.FILE) -> str:
    """The text in `path`, with the same limits and errors."""
    limits.check_file(path, most)
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
    except OSError as error:
        raise UserError(f"could not read {path}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}") from None


def read_json_lines(path: Path, most: int = limits.TABLE) -> list[Any]:
    """The JSON values in the lines of `path` that are not empty, with the same limits and errors."""
    limits.check_file(path, most)
    lines = enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
    return [parse_json(line, f"{path}, line {number}") for number, line in lines if line.strip()]


def as_read(value: Any) -> Any:
    """A tree of plain values as it will be when it was written as JSON and read: with lists instead of tuples."""
    return json.loads(json.dumps(value, default=str))


def parse_json(text: str | bytes, where: Path | str, strict: bool = True) -> Any:
    """A JSON value. Raises UserError for what is none, or nested too deeply; `where` stands for it in messages.

    NaN and Infinity, which JSON does not have, numbers that are read as infinite, and halves of characters are refused,
    unless this is not `strict`: for what a process of our own wrote, or a browser sends.
    """
    try:
        text = text if isinstance(text, str) else text.decode()
        value = json.loads(text, **(_FINITE if strict else {}), **(_SMALL if strict and _EXPONENT.search(text) else {}))
    except RecursionError:
        raise UserError(f"{where} is damaged: lists or tables are nested too deeply") from None
    except ValueError as error:
        raise UserError(f"{where} is damaged: {error}") from None
    limits.check_depth(value, where)
    if strict and _HALF.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            raise UserError(f"{where} is damaged: {half!r} in a text is half of a character") from None
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def _finite_number(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(text)


_FINITE: dict[str, Any] = {"parse_constant": _refuse_constant}
_SMALL: dict[str, Any] = {"parse_float": _finite_number}


def strict_json(value: Any) -> str:
    """A tree of plain values in one line of JSON, which has no infinity and no NaN: null stands for them."""
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _refusal(error: Exception) -> str | None:
    """Why the disk refused, if that is what `error` says: libraries written in Rust have errors of their own."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error).split("I/O error: ")[-1] if "(os error " in str(error) else None


def _to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, would survive a power cut."""
    if path.is_dir() and os.name == "nt":
        return  # Windows opens no folders
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def utf8(text: str) -> str:
    """The text of an argument, whose bytes are whatever the shell gave, in Unicode NFC as those of files.

    Raises UserError where they are not UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UserError(f"the text {text!r} is not UTF-8") from None
    return unicodedata.normalize("NFC", text)
