"""Reading what a model is given to look at, and refusing what does not fit."""

import sys
from pathlib import Path

from foveate.data import utf8
from foveate.errors import UserError
from foveate.viewer.protocol import File, Input, InputKind

LARGEST = 64 * 2**20
"""Bytes of a file that are read at most."""

SHORT = 70
"""Characters of a text that make a title."""


def read_input(argument: str, takes: InputKind) -> Input:
    """What a user named on the command line: standard input for "-", else a file that there is, else the text itself.

    Raises UserError for a file that cannot be read, and where a model takes a file and there is none.
    """
    if argument == "-":
        if sys.stdin is None:
            raise UserError("nothing to look at: standard input is closed")
        data = _bounded(sys.stdin.buffer.read(LARGEST + 1), "standard input")
        return _decoded(data, "standard input") if takes == "text" else File("input", data)
    path = Path(argument)
    if not _is_file(path):
        if takes != "text":
            raise UserError(f"there is no file {argument}; this model is given the file of {_ARTICLES[takes]}")
        return argument
    try:
        with path.open("rb") as file:
            data = _bounded(file.read(LARGEST + 1), argument)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    return _decoded(data, argument) if takes == "text" else File(path.name, data)


def shortened(text: str) -> str:
    """A text as a title: its beginning, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 1].rstrip()}…"


def text_of(given: Input, name: str) -> str:
    """A text that says something. Raises UserError for any other input."""
    if isinstance(given, File):
        raise UserError(f"{given.name} is a file, but {name} reads text")
    if not given.strip():
        raise UserError("the text is empty: there is nothing to look at")
    return utf8(given)


def file_of(given: Input, name: str, takes: InputKind) -> File:
    """A file. Raises UserError for a text."""
    if isinstance(given, str):
        raise UserError(f"a text was given, but {name} is given the file of {_ARTICLES[takes]}")
    return given


def check_length(count: int, most: int, what: str, unit: str = "tokens") -> None:
    """Raises UserError where an input has more places than may be looked at."""
    if count > most:
        raise UserError(f"{what} has {count:,} {unit}, but at most {most:,} are looked at; --max-tokens allows more")


_ARTICLES = {"image": "an image", "audio": "a sound (.wav)"}


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a long text is no path
        return False


def _bounded(data: bytes, name: str) -> bytes:
    if len(data) > LARGEST:
        raise UserError(f"{name} has more than {LARGEST // 2**20} MiB, the most that is read")
    return data


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is no UTF-8 text (byte {error.start:,}), but this model reads text") from None
