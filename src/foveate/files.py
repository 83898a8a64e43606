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
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from foveate import limits
from foveate.errors import UserError

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""How JSON writes a half of a surrogate pair. Without the other one it cannot be written into any file."""

_LIMITS = {"config.json": limits.check_sizes, "processor.json": limits.check_formats}
"""What looks at the numbers of a model's files before anything is made of them."""

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


def check_place(path: Path) -> None:
    """Raise UserError for a file that cannot be there: before the work, not after it."""
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
        if path.exists() and not path.is_file():
            raise UserError(f"could not write {path}: it is {'a folder' if path.is_dir() else 'not a regular file'}")
        path.parent.mkdir(parents=True, exist_ok=True)
        # A folder, because some writers put a temporary file beside theirs.
        with TemporaryDirectory(prefix=UNFINISHED, dir=path.parent, ignore_cleanup_errors=True) as workshop:
            temporary = Path(workshop) / path.name
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


def clear_unfinished(folder: Path) -> None:
    """Remove what processes that were killed had not written to the end, where no other is at work."""
    for workshop in folder.glob(f"{UNFINISHED}*"):
        shutil.rmtree(workshop, ignore_errors=True)


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
    if path.name in _LIMITS:
        _LIMITS[path.name](value, path)
    return value


def read_json_value(path: Path, most: int = limits.FILE) -> Any:
    """The JSON value in `path`, with the same limits and errors."""
    return parse_json(read_text(path, most), path)


def read_text(path: Path, most: int = limits.FILE) -> str:
    """The text in `path`, with the same limits and errors."""
    limits.check_file(path, most)
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
    except OSError as error:
        raise UserError(f"could not read {path}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}") from None


def parse_json(text: str, where: Path | str) -> Any:
    """A JSON value. Raises UserError for what is none, or nested too deeply; `where` stands for it in messages."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise UserError(f"{where} is damaged: lists or tables are nested too deeply") from None
    except ValueError as error:
        raise UserError(f"{where} is damaged: {error}") from None
    limits.check_depth(value, where)
    if _HALF.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            raise UserError(f"{where} is damaged: {half!r} in a text is half of a character") from None
    return value


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
