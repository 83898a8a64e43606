"""Tokens of large texts in mapped files: the same rows as from memory, and what can go wrong."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveate.data.dataset import Dataset
from foveate.data.splits import COPY
from foveate.data.text import spooled_passages, token_shards
from foveate.data.text.documents import Passage
from foveate.data.text.spooled_passages import SpooledPassages, spooled
from foveate.data.text.token_shards import TokenShards, keep_rows, rows_key, write_rows
from foveate.data.tokens.tokenizers import train_bpe
from foveate.errors import UserError

ROWS = [(np.arange(length, dtype=np.int32) + 10 * length, length - 3, f"é {length}") for length in (5, 3, 2, 7, 1, 4)]


def make(tokens: np.ndarray, number: int, place: str) -> tuple[list[int], int, str]:
    return tokens.tolist(), number, place


EXPECTED = [make(*row) for row in ROWS]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def on_disk(monkeypatch: pytest.MonkeyPatch, shard: int = 8) -> None:
    monkeypatch.setattr(token_shards, "IN_MEMORY", 0)
    monkeypatch.setattr(token_shards, "SHARD", shard)
    monkeypatch.setattr(spooled_passages, "IN_MEMORY", 0)


@pytest.mark.parametrize(("shard", "files"), [(1, 6), (8, 4), (100, 1)])
def test_rows_come_back_whatever_the_size_of_a_file(
    shard: int, files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk(monkeypatch, shard)
    write_rows(ROWS, tmp_path)
    found = TokenShards(tmp_path, make)
    assert len(list(tmp_path.glob("tokens-*.bin"))) == files
    assert list(found) == EXPECTED
    assert found[-1] == EXPECTED[-1]
    assert found[1:6:2] == EXPECTED[1:6:2]
    with pytest.raises(IndexError):
        found[6]
    with pytest.raises(ValueError, match="read-only"):
        TokenShards(tmp_path, lambda tokens, _, place: tokens)[3][0] = 1


def test_they_are_tokenised_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    def rows() -> Iterator[Any]:
        reads.append(1)
        yield from ROWS

    assert keep_rows(rows, make, "key") == EXPECTED
    assert not cache.exists()  # few tokens stay in memory
    on_disk(monkeypatch)
    for _ in range(3):
        assert list(keep_rows(rows, make, "key")) == EXPECTED
    assert len(reads) == 2
    assert [path.name for path in cache.iterdir() if path.is_dir()] == ["tokens-key"]


def test_the_name_depends_on_text_tokenizer_and_settings() -> None:
    def key(text: str, vocabulary: int = 60, *more: object) -> str:
        dataset = Dataset("a", [Passage("a, line 1", "", (text,))])
        return rows_key(dataset, train_bpe(["the keeper lit the lamp of the stairs"] * 9, vocabulary), *more)

    keys = [key("one"), key("two"), key("one", 20), key("one", 60, 512), key("one", 60, None, {"sea": 1})]
    assert key("one") == keys[0]
    assert len({*keys}) == len(keys)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokens-00001.bin", b"1234", "tokens-00001.bin has 4 bytes, but must have 36"),
        ("lengths.bin", b"", "lengths.bin has 0 bytes, but must have 24"),
        ("places.bin", None, "No such file"),
        ("shards.json", b'{"rows": 7}', "first_rows"),
    ],
)
def test_what_was_damaged(
    name: str, content: bytes | None, message: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk(monkeypatch, 9)
    keep_rows(lambda: ROWS, make, "key")
    path = cache / "tokens-key" / name
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(UserError, match=rf"tokens-key is damaged: .*{message}.*; remove it to") as told:
        keep_rows(lambda: ROWS, make, "key")
    assert "\n" not in str(told.value)


def test_what_was_half_written_is_written_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_disk(monkeypatch)

    def stops() -> Iterator[Any]:
        yield from ROWS[:4]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep_rows(stops, make, "key")
    assert not [path for path in cache.iterdir() if path.is_dir()]
    assert list(keep_rows(lambda: ROWS, make, "key")) == EXPECTED


def test_a_cache_that_cannot_be_written(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_disk(monkeypatch)
    cache.write_text("a file")
    with pytest.raises(UserError, match=r"cannot write .*; FOVEATE_CACHE can name another folder"):
        keep_rows(lambda: ROWS, make, "key")
    with pytest.raises(UserError, match=r"cannot write into .*; FOVEATE_CACHE can name another folder"):
        spooled([Passage("a, line 1", "", ("b",))])


def test_spooled_passages_are_the_same(cache: Path) -> None:
    passages = [Passage(f"a, line {line}", "é", ("One. " * (line % 7), "Two.")) for line in range(30)]
    found = SpooledPassages(passages)
    assert len(found) == len(passages)
    assert list(found) == passages
    assert (found[-2], found[3:9:2]) == (passages[-2], passages[3:9:2])
    assert Dataset("a", found).digest() == Dataset("a", passages).digest()
    parts, expected = (Dataset("a", kept).hold_out(5, lambda one: {COPY: one.text}) for kept in (found, passages))
    assert [list(part) for part in parts] == [list(part) for part in expected]
    assert spooled(passages) == passages
    assert [*cache.iterdir()] == []  # the file has no name
