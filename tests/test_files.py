"""Files are written whole or not at all."""

import errno
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from foveate import files
from foveate.errors import UserError
from foveate.files import read_json, strict_json, written


def test_folders_of_others_stay(tmp_path: Path) -> None:
    """Two files may be written beside one another, too."""
    (tmp_path / ".unfinished").mkdir()
    with written(tmp_path / "a") as first, written(tmp_path / "b") as second:
        first.write_text("a")
        second.write_text("b")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".unfinished", "a", "b"]


def test_a_disk_that_cannot_make_sure_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is written; and what it cannot make sure of in a file is told."""
    to_disk = os.fsync

    def refuse(kind: Callable[[int], bool]) -> None:
        def fsync(handle: int) -> None:
            if kind(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, "Invalid argument")
            to_disk(handle)

        monkeypatch.setattr(os, "fsync", fsync)

    refuse(stat.S_ISDIR)
    with written(tmp_path / "a") as path:
        path.write_text("a")
    assert (tmp_path / "a").read_text() == "a"
    refuse(stat.S_ISREG)
    with pytest.raises(UserError, match=r"could not write b in .*Invalid"), written(tmp_path / "b") as path:
        path.write_text("b")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_json_after_the_mark_of_some_editors(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"a": 1}', encoding="utf-8-sig")
    assert read_json(tmp_path / "config.json") == {"a": 1}


def test_half_of_a_character_can_be_written_nowhere(tmp_path: Path) -> None:
    (tmp_path / "whole.json").write_text(r'{"a": "\ud83d\ude00"}')
    assert read_json(tmp_path / "whole.json") == {"a": "😀"}
    (tmp_path / "half.json").write_text(r'{"a": ["b", "\uDE00"]}')
    with pytest.raises(UserError, match=r"half.json is damaged: '.ude00' in a text is half of a character"):
        read_json(tmp_path / "half.json")


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "-1E+400", "[1.5, 2e308]"])
def test_numbers_of_files_are_finite(number: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"a": {number}, "b": 1e-400, "c": "1e999"}}')
    with pytest.raises(UserError, match=r"a\.json is damaged: \S+ is not a number of JSON"):
        read_json(tmp_path / "a.json")


def test_there_is_one_gate_for_json_and_one_for_tokenizers() -> None:
    """No other module reads JSON, or opens and calls a tokenizer of the library: see `files` and `library`."""
    source = Path(files.__file__).parent
    gates = {
        r"json\.loads?\b": {source / "files.py"},
        r"\bTokenizer\.from_|encode_batch|decode_batch": {source / "data" / "tokens" / "library.py"},
        r"safe_open\(|safetensors\.torch import .*load": {source / "tensor_files.py"},
    }
    for call, allowed in gates.items():
        assert {path for path in source.rglob("*.py") if re.search(call, path.read_text(encoding="utf-8"))} == allowed


def test_json_has_neither_infinity_nor_nan() -> None:
    assert strict_json({"a": [1.5, float("inf")], "b": (float("nan"), 2)}) == '{"a": [1.5, null], "b": [null, 2]}'
