"""Lines that are no text, and files that claim more than they are."""

import gzip
import hashlib
import io
import os
import time
from pathlib import Path

import pytest

from foveate.data.text.files import MOST_BYTES_OF_LINE, digest, read_lines
from foveate.errors import UserError


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            "a boat\nhome\n".encode("utf-16-le"),
            r"line 1 of .*text has a NUL byte: it is UTF-16 without a mark, or damaged",
        ),
        (b"a boat\n\0\0\0\n", "line 2 of .*text has a NUL byte"),
        (b"a boat\ra bird\r", r"line 1 of .*text has a carriage return inside; .* tr '\\r' '\\n' < OLD > NEW"),
        (b"a boat\n" + b"x" * (MOST_BYTES_OF_LINE + 1), "line 2 of .*text is longer than 4 MiB: split it into lines"),
    ],
)
def test_what_is_no_line_is_told(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "text"
    for data in (content, gzip.compress(content)):
        path.write_bytes(data)
        with pytest.raises(UserError, match=told):
            list(read_lines(path))


def test_a_carriage_return_before_a_line_feed_ends_the_line() -> None:
    assert list(read_lines(io.BytesIO(b"a boat\r\na bird\r\r\n"))) == ["a boat", "a bird"]


def test_a_line_without_end_takes_no_more_memory_than_a_line() -> None:
    class Endless(io.RawIOBase):
        read_so_far = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:
            self.read_so_far += len(buffer)
            buffer[:] = b"x" * len(buffer)
            return len(buffer)

    source = Endless()
    with pytest.raises(UserError, match="longer than 4 MiB"):
        list(read_lines(io.BufferedReader(source)))
    assert source.read_so_far < 2 * MOST_BYTES_OF_LINE


def test_an_archive_that_expands_without_measure_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(900):
            file.write((b"x" * 2**10 + b"\n") * 2**10)
    began = time.process_time()
    with pytest.raises(UserError, match=r"bomb.gz expands to more than 50 times its size, which no text does"):
        for _ in read_lines(path):
            pass
    assert time.process_time() - began < 5


def test_a_file_is_read_once_for_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, read = tmp_path / "a.txt", []
    file_digest = hashlib.file_digest
    monkeypatch.setattr("hashlib.file_digest", lambda *given: read.append(given) or file_digest(*given))
    path.write_text("one")
    first = digest(path)
    assert digest(path) == first == digest(tmp_path / "." / "a.txt")
    assert len(read) == 1
    path.write_text("two")
    os.utime(path, ns=(1, 1))  # a file system may count time too coarsely for this test
    assert digest(path) != first
