"""NumPy's .npz files: arrays by name, within bounds and without pickles."""

import math
import sys
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from foveate.errors import UserError
from foveate.files import utf8
from foveate.limits import ARRAYS

DAMAGED = (OSError, LookupError, ValueError, TypeError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile)
"""What zipfile and numpy raise for a damaged file."""


def read_arrays(file: Path, what: str, needed: Sequence[str] = (), most: int = ARRAYS) -> dict[str, np.ndarray]:
    """All arrays of a file of at most `most` bytes each, as they are in memory.

    Raises UserError for a file that is damaged or lacks a needed array: then it is not `what` was expected.
    """
    try:
        _check_sizes(file, most)
        with np.load(file, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
        for name in needed:
            if name not in found:
                raise KeyError(f"it has no '{name}'")
    except UserError:
        raise
    except DAMAGED as error:
        raise UserError(f"{file} is not {what}: {' '.join(str(error).split())}") from None
    return found


def texts_of(array: np.ndarray, where: str) -> list[str]:
    """The texts of an array. Raises UserError for what are no texts, or not Unicode."""
    if array.dtype.kind != "U":
        raise UserError(f"{where} must be text, not {array.dtype}")
    numbers = np.frombuffer(array.astype(array.dtype.newbyteorder("=")).tobytes(), np.uint32)
    if numbers.size and numbers.max() > sys.maxunicode:  # numpy passes them on to Python, unlooked at
        raise UserError(f"{where} is not Unicode")
    return [utf8(str(text)) for text in array.reshape(-1)]


def _check_sizes(file: Path, most: int) -> None:
    """Raise UserError for arrays that take more memory than the limit, and for one whose header claims another size
    than it has: numpy would allocate what is claimed."""
    with zipfile.ZipFile(file) as archive:
        for part in archive.infolist():
            if part.file_size > most:
                raise UserError(f"{file}: {part.filename} takes more than {most // 2**20:,} MiB, the limit")
            with archive.open(part) as opened:
                version = np.lib.format.read_magic(opened)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, kind = read(opened)
                claimed = math.prod(shape) * kind.itemsize
                if claimed != part.file_size - opened.tell():
                    raise ValueError(f"{part.filename} has another size than its header says")
