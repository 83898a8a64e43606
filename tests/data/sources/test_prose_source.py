"""Whole documents of English prose: their parts, and how each package is read."""

import json
import struct
import zlib
from pathlib import Path

import pytest

from foveate.data.sources import open_source, prose
from foveate.errors import UserError


def vector(lines: list[str]) -> bytes:
    """Lines as R's lazy loading keeps them."""
    head = b"X\n" + struct.pack(">iiii", 3, 0, 0, 5) + b"UTF-8"
    texts = b"".join(struct.pack(">ii", 0x40009, len(one.encode())) + one.encode() for one in lines)
    plain = head + struct.pack(">ii", 16, len(lines)) + texts
    return struct.pack(">I", len(plain)) + zlib.compress(plain)


def test_lines_of_two_novels() -> None:
    novels = [["EMMA", "", "Emma Woodhouse, handsome"], ["PERSUASION", "Sir Walter’s"]]
    assert list(prose.r_texts(b"".join(map(vector, novels)))) == novels


def test_words_and_marks_are_joined() -> None:
    assert prose.as_written("He said : `` Go ( now ) , please '' !") == 'He said: "Go (now), please"!'


def test_every_seventeenth_document_is_to_test_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    (tmp_path / "prose-1").mkdir()
    lines = [json.dumps([f"document {number}", "brown", f"Text {number}."]) for number in range(1, 137)]
    (tmp_path / "prose-1" / "documents.jsonl").write_text("\n".join(lines), encoding="utf-8")
    splits = open_source("prose", task="language")
    assert [one.place for one in splits.test] == [f"document {number}" for number in range(17, 137, 17)]
    assert [one.place for one in splits.dev] == ["document 8", "document 76"]
    assert len(list(splits.train)) == 126


def test_a_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    (tmp_path / "prose-1").mkdir()
    (tmp_path / "prose-1" / "documents.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"is damaged: .*; remove it to fetch it again"):
        open_source("prose", task="language")
