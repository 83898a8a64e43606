"""Files are written whole or not at all."""

import errno
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from foveate import files
from foveate.errors import UserError
from foveate.files import UNFINISHED, clear_unfinished, read_json, real_path, strict_json, written


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


KILLED = """
import os, signal, sys
from pathlib import Path
from foveate.files import workshop, written
with written(Path(sys.argv[1]) / "a") as first, workshop(Path(sys.argv[1])) as second:
    first.write_text("half")
    (second / "b").write_text("half")
    print("begun", flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_leaves_is_removed_and_nothing_else(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"begun\n"
        left = sorted(tmp_path.glob(f"{UNFINISHED}*"))
        assert len(left) == 2
        with written(tmp_path / "c") as path:
            path.write_text("c")
        clear_unfinished(tmp_path, alone=True)
        assert sorted(tmp_path.glob(f"{UNFINISHED}*")) == left
        process.stdin.close()
        assert process.wait(60) == -signal.SIGKILL
    assert sorted(tmp_path.glob(f"{UNFINISHED}*")) == left
    imports = "import sys; from pathlib import Path; from foveate.files import written"
    write = f"{imports}\nwith written(Path(sys.argv[1])) as path: path.touch()"
    subprocess.run([sys.executable, "-c", write, str(tmp_path / "d")], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "d"]


def test_many_processes_write_into_one_folder(tmp_path: Path) -> None:
    """Each takes those of the others for used, and none loses its own."""
    write = (
        "import sys; from pathlib import Path; from foveate import files\n"
        "for number in range(200):\n"
        "    files.clear_unfinished(Path(sys.argv[1]))\n"
        "    with files.written(Path(sys.argv[1]) / f'{sys.argv[2]}-{number}') as path: path.write_text('x')\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", write, str(tmp_path), str(one)]) for one in range(3)]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    assert len(list(tmp_path.iterdir())) == 600


def test_temporary_folders_are_made_in_one_place() -> None:
    """Whose leavings the next process removes; temporary files without a name leave nothing."""
    package = Path(files.__file__).parent
    makers = ("mkdtemp", "mkstemp", "TemporaryDirectory", "NamedTemporaryFile", "SpooledTemporaryFile")
    users = [path.name for path in package.rglob("*.py") if any(name in path.read_text() for name in makers)]
    assert users == ["files.py"]


def test_a_link_that_leads_to_itself(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "link").symlink_to("file")
    assert real_path(tmp_path / "link") == tmp_path / "file"
    with pytest.raises(UserError, match=r"loop is a link that leads to itself$"):
        real_path(tmp_path / "loop")
