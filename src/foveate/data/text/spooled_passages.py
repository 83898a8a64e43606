"""Passages of a large text in a file of the cache that vanishes with the process: text need not fit into memory."""

import json
from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import overload

from foveate.data.ragged import drain
from foveate.data.text.documents import Passage
from foveate.errors import UserError
from foveate.files import parse_json

IN_MEMORY = 20_000_000
"""Characters of a text that is kept in memory."""


def spooled(passages: Iterable[Passage]) -> Sequence[Passage]:
    """All the passages, read once: in memory, or in a file if they are many. Raises UserError where it cannot be
    written."""
    coming, held, size = iter(passages), list[Passage](), 0
    for passage in coming:
        held.append(passage)
        size += sum(map(len, passage.sentences)) + sum(len(text) for _, text in passage.messages)
        if size > IN_MEMORY:
            return SpooledPassages(chain(drain(held), coming))
    return held


class SpooledPassages(Sequence[Passage]):
    """Passages in a file, one line of JSON each."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        from foveate.data.sources.cache import cache_folder  # the sources read prose too

        folder, end, self._ends = cache_folder(), 0, array("q", [0])
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=folder) as file:
                for passage in passages:
                    end += file.write(json.dumps(passage, ensure_ascii=False).encode())
                    self._ends.append(end)
                file.flush()
                self._bytes = mmap(file.fileno(), 0, access=ACCESS_READ)  # keeps the file open
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"cannot write into {folder}: {reason}; FOVEATE_CACHE can name another folder") from None

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, number: int) -> Passage: ...

    @overload
    def __getitem__(self, number: slice) -> list[Passage]: ...

    def __getitem__(self, number: int | slice) -> Passage | list[Passage]:
        if isinstance(number, slice):
            return [self[each] for each in range(len(self))[number]]
        number = range(len(self))[number]
        place, condition, sentences, messages, is_prompt = parse_json(
            bytes(self._bytes[self._ends[number] : self._ends[number + 1]]), "a kept passage"
        )
        return Passage(place, condition, tuple(sentences), tuple((role, text) for role, text in messages), is_prompt)
