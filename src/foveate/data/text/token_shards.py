"""Token ids of a large text, in files of the user's cache that are mapped into memory.

A text is tokenised once: the name of its folder is a digest of the text, of the tokenizer and of what else decides the
rows. Several processes share the files, and a text need not fit into memory. A smaller one stays there, without files.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import chain, pairwise
from pathlib import Path
from sys import byteorder
from tempfile import gettempdir
from typing import Any, Generic, TypeVar, overload

import numpy as np

from foveate.contracts import Tokenizer
from foveate.data.dataset import Dataset
from foveate.data.ragged import Numbers, drain
from foveate.files import read_json, workshop

VERSION = "1"
"""Changes when rows are written in another way."""

IN_MEMORY = 20_000_000
"""Tokens of a text that is kept in memory."""

SHARD = 20_000_000
"""Tokens of a file: 80 MB."""

INDEX, LENGTHS, NUMBERS, PLACES, ENDS = "shards.json", "lengths.bin", "numbers.bin", "places.bin", "ends.bin"


Row = tuple[Numbers, int, str]
"""Tokens that are read together, a number that the caller gives them, and a text: where they stand."""

R = TypeVar("R")


def keep_rows(rows: Callable[[], Iterable[Row]], make: Callable[[Numbers, int, str], R], key: str) -> Sequence[R]:
    """What `make` gives for each row: in memory if they are few, otherwise from the cache, where the rows are put the
    first time.

    Raises UserError where the cache cannot be written, or was damaged.
    """
    from foveate.data.sources.cache import cache_folder, fetched  # the sources read prose too

    name = f"tokens-{key}"
    if (folder := cache_folder() / name).is_dir():
        return TokenShards(folder, make)
    coming, held, count = iter(rows()), list[Row](), 0
    for row in coming:
        held.append(row)
        count += len(row[0])
        if count > IN_MEMORY:
            folder = fetched(name, lambda folder: write_rows(chain(drain(held), coming), folder), lambda place: None)
            return TokenShards(folder, make)
    return [make(*row) for row in held]


def rows_key(dataset: Dataset[Any], tokenizer: Tokenizer, *others: object) -> str:
    """A digest of everything that rows of tokens depend on; `others` are plain values."""
    with workshop(Path(gettempdir())) as folder:
        tokenizer.save(path := folder / "tokenizer.json")
        text = json.dumps([VERSION, dataset.digest(), path.read_text(encoding="utf-8"), *others])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def write_rows(rows: Iterable[Row], folder: Path) -> None:
    """Write rows into an empty folder; one of them is in memory."""
    firsts, written, end, filled = list[int](), 0, 0, 0
    with ExitStack() as whole, ExitStack() as shard:
        names = (PLACES, LENGTHS, NUMBERS, ENDS)
        places, lengths, numbers, ends = (whole.enter_context(open(folder / name, "wb")) for name in names)
        for tokens, number, place in rows:
            if not firsts or filled + len(tokens) > SHARD:
                shard.close()
                file, filled = shard.enter_context(open(folder / _shard(len(firsts)), "wb")), 0
                firsts.append(written)
            file.write(tokens.astype(np.int32, copy=False).tobytes())
            filled += len(tokens)
            end += places.write(place.encode())
            lengths.write(len(tokens).to_bytes(4, byteorder))
            numbers.write(number.to_bytes(8, byteorder, signed=True))
            ends.write(end.to_bytes(8, byteorder))
            written += 1
    (folder / INDEX).write_text(json.dumps({"rows": written, "first_rows": firsts}), encoding="utf-8")


class TokenShards(Sequence[R], Generic[R]):
    """What `make` gives for each row in a folder that `write_rows` filled; arrays are read-only views of its files."""

    def __init__(self, folder: Path, make: Callable[[Numbers, int, str], R]) -> None:
        """Raises UserError for a file that is missing, too short or too long."""
        from foveate.data.sources.cache import undamaged

        self._make = make
        with undamaged(folder):
            index = read_json(folder / INDEX)
            self._rows, self._firsts = int(index["rows"]), np.array(index["first_rows"], np.int64)
            self._lengths = self._mapped(folder / LENGTHS, np.int32, self._rows)
            self._numbers = self._mapped(folder / NUMBERS, np.int64, self._rows)
            self._ends = self._mapped(folder / ENDS, np.int64, self._rows)
            self._places = self._mapped(folder / PLACES, np.uint8, int(self._ends[-1]))
            self._starts = np.cumsum(self._lengths, dtype=np.int64) - self._lengths
            bounds = [*self._starts[self._firsts].tolist(), int(self._starts[-1] + self._lengths[-1])]
            self._shards = [
                self._mapped(folder / _shard(number), np.int32, end - begin)
                for number, (begin, end) in enumerate(pairwise(bounds))
            ]

    @staticmethod
    def _mapped(path: Path, kind: type[np.generic], count: int) -> np.ndarray:
        if (size := path.stat().st_size) != count * np.dtype(kind).itemsize:
            raise ValueError(f"{path.name} has {size:,} bytes, but must have {count * np.dtype(kind).itemsize:,}")
        return np.memmap(path, kind, "r")

    def __len__(self) -> int:
        return self._rows

    @overload
    def __getitem__(self, row: int) -> R: ...

    @overload
    def __getitem__(self, row: slice) -> list[R]: ...

    def __getitem__(self, row: int | slice) -> R | list[R]:
        if isinstance(row, slice):
            return [self[each] for each in range(self._rows)[row]]
        row = range(self._rows)[row]
        shard = int(np.searchsorted(self._firsts, row, "right")) - 1
        begin = int(self._starts[row] - self._starts[self._firsts[shard]])
        tokens = self._shards[shard][begin : begin + int(self._lengths[row])]
        place = bytes(self._places[int(self._ends[row - 1]) if row else 0 : int(self._ends[row])]).decode()
        return self._make(np.asarray(tokens), int(self._numbers[row]), place)


def _shard(number: int) -> str:
    return f"tokens-{number:05}.bin"
