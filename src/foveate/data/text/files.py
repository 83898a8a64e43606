"""Lines of text as the user gives them, in files, streams and arguments; what is not text is reported with its line."""

import codecs
import gzip
import hashlib
import io
import json
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from foveate.data.folders import files_below
from foveate.errors import UserError, show_value

TEXTS = (".txt", ".txt.gz")
"""How the names of the texts in a folder end."""

MOST_BYTES_OF_LINE = 4 * 2**20
"""A longer line is not a sentence, document or row of a table, and would be held in memory many times over."""

MOST_EXPANSION = 50
"""A compressed file of text grows to ten times its size at most; one that grows more than this was made to do harm."""

SMALL = 16 * 2**20
"""Bytes of text that a compressed file of any size may hold: a few lines that repeat shrink to almost nothing."""

GZIP = b"\x1f\x8b"
"""How a compressed file begins, and none that is UTF-8."""

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How UTF-16 begins, as Excel writes it, and no text that is UTF-8."""

CATALOGUES = (".mo", ".po")
"""How the names of the gettext catalogues in a folder end."""


Paths = str | Path | Iterable[str | Path]
"""One path or several, as they are written in Python."""


def as_paths(given: Paths) -> tuple[Path, ...]:
    """The paths. Raises UserError for what is none."""
    try:
        return (Path(given),) if isinstance(given, str | Path) else tuple(map(Path, given))
    except TypeError:
        raise UserError(f"{show_value(given)} is neither a path nor a list of paths") from None


def digest(path: Path) -> str:
    """A few letters that are others for other content (as good as always) of a file, or of what is read of a folder."""
    try:
        if not path.is_dir():
            state = path.stat()
            return _digest(path.resolve(), state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
        files = files_below(path, (*TEXTS, *CATALOGUES))
        listed = "".join(f"{file.relative_to(path)}\0{digest(file)}\n" for file in files)
        return hashlib.blake2b(listed.encode(errors="surrogateescape")).hexdigest()[:12]
    except OSError as error:
        raise UserError(f"cannot read {error.filename or path}: {error.strerror}") from None


@lru_cache(maxsize=256)
def _digest(path: Path, *state: int) -> str:
    """The digest of a file of this inode, size and time. A changed file has others, so that each is read once."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:12]


def examples_digest(examples: Iterable[tuple]) -> str:
    """A few letters that are others (as good as always) for other examples of a text, and for another order of them."""
    found = hashlib.blake2b()
    for example in examples:
        found.update(json.dumps(example).encode())
    return found.hexdigest()[:12]


def check_readable_again(path: Path) -> None:
    """Raise UserError for a pipe or a device: text to learn from is read more than once."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UserError(f"{path} can be read only once: save what comes from it to a file")


def read_sentences(origin: Path | Iterable[bytes]) -> Iterator[str]:
    """As `read_lines`, without surrounding space."""
    return map(str.strip, read_lines(origin))


def read_lines(origin: Path | Iterable[bytes]) -> Iterator[str]:
    """The lines of a file (plain or .gz) or of an open binary stream such as `sys.stdin.buffer`, without their ends.

    In Unicode NFC. Empty lines come as empty strings, so that answers can be given line by line. Raises UserError on a
    missing, empty, damaged or non-UTF-8 file.
    """
    lines = file_lines(origin) if isinstance(origin, Path) else _decoded(origin, getattr(origin, "name", "the input"))
    return (unicodedata.normalize("NFC", line).rstrip("\r\n") for line in lines)


def file_lines(path: Path) -> Iterator[str]:
    """The lines of a file as they are, with their ends. Raises UserError as `read_lines`."""
    try:
        with path.open("rb") as file:
            compressed = path.suffix.lower() == ".gz" or file.peek(2)[:2] == GZIP
            lines = _decompressed(file, path) if compressed else file
            yield from _decoded(_as_utf8(file, path) if file.peek(2)[:2] in UTF_16 else lines, str(path))
    except FileNotFoundError:
        raise UserError(f"there is no file {path}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _as_utf8(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """The lines of a file in UTF-16, as they would be in UTF-8."""
    text = io.TextIOWrapper(file, "utf-16", newline="\n")
    try:
        yield from (line.encode() for line in iter(lambda: text.readline(MOST_BYTES_OF_LINE), ""))
    except UnicodeError as error:
        raise UserError(f"{path} begins as UTF-16, but is damaged: {error}") from None
    finally:
        text.detach()


def _decompressed(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """The lines of a gzip file. Raises UserError for one that holds far more than text can be compressed to."""
    size = 0
    for line in _bounded(gzip.GzipFile(fileobj=file)):
        size += len(line)
        if size > SMALL + MOST_EXPANSION * file.tell():
            raise UserError(f"{path} expands to more than {MOST_EXPANSION} times its size, which no text does")
        yield line


def _bounded(stream: Iterable[bytes]) -> Iterable[bytes]:
    """The lines of a stream; of one that is too long only the beginning, one byte longer than it may be."""
    readline = getattr(stream, "readline", None)
    return iter(lambda: readline(MOST_BYTES_OF_LINE + 1), b"") if readline else stream


def _decoded(stream: Iterable[bytes], name: str) -> Iterator[str]:
    """Lines end at line feeds alone: the other line ends that Unicode knows occur inside sentences."""
    offset = 0
    for number, line in enumerate(_bounded(stream), 1):
        if len(line) > MOST_BYTES_OF_LINE:
            raise UserError(
                f"line {number} of {name} is longer than {MOST_BYTES_OF_LINE // 2**20} MiB: split it into lines"
            )
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            place = f"byte {offset + error.start} (line {number})"
            raise UserError(f"{name} is not UTF-8: see {place}; save it as UTF-8, with iconv for instance") from None
        _check_characters(text, number, name)
        offset += len(line)
        yield text.removeprefix("\ufeff") if number == 1 else text
    if offset == 0:
        raise UserError(f"{name} is empty")


def _check_characters(line: str, number: int, name: str) -> None:
    """Raise UserError for characters that no line of text has, which tell of another encoding or another line end."""
    if "\0" in line:
        raise UserError(
            f"line {number} of {name} has a NUL byte: it is UTF-16 without a mark, or damaged; save it as UTF-8"
        )
    if "\r" in line.rstrip("\r\n"):
        raise UserError(
            f"line {number} of {name} has a carriage return inside; "
            f"if its lines end with them, convert it: tr '\\r' '\\n' < OLD > NEW"
        )
