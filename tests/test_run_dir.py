"""Run folders: what goes in comes out, and whatever is wrong with one gets one clear line."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers.models
import torch
from safetensors.torch import save_file
from torch import nn

from foveate import run_dir
from foveate.errors import UserError
from foveate.tensor_files import read_metadata, read_tensors, write_tensors


class Tied(nn.Module):
    """A head that shares the embedding's weights, and a buffer."""

    def __init__(self, words: int = 13, width: int = 7) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.head = nn.Linear(width, words)
        self.head.weight = self.embedding.weight
        self.register_buffer("count", torch.tensor(3))


def saved(folder: Path, **description: Any) -> Tied:
    model = Tied()
    files = {"words.txt": lambda path: path.write_text("a b c", encoding="utf-8")}
    run_dir.save(folder, {"model": {"name": "tied", "width": 7}, **description}, model.state_dict(), files)
    return model


def message(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        run_dir.load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_goes_in_comes_out(tmp_path: Path):
    model = saved(tmp_path / "run", language="français")
    loaded = run_dir.load(tmp_path / "run")
    assert loaded.description == {"model": {"name": "tied", "width": 7}, "language": "français"}
    assert loaded.path("words.txt").read_text(encoding="utf-8") == "a b c"
    other = Tied()
    loaded.fill(other)
    assert other.head.weight is other.embedding.weight
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name])


def test_the_files(tmp_path: Path):
    saved(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors", "words.txt"]
    assert json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))["format"] == "foveate/2"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1, "the weights are as readable as the rest"


def test_tied_tensors_are_written_once(tmp_path: Path):
    big = torch.randn(101, 103)
    write_tensors(tmp_path / "x.safetensors", {"one/a": big, "one/b": big, "two/c": big[:2]})
    assert (tmp_path / "x.safetensors").stat().st_size < 1.2 * big.numel() * 4
    read = read_tensors(tmp_path / "x.safetensors").tensors
    assert torch.equal(read["one/b"], big)
    assert torch.equal(read["two/c"], big[:2])
    assert read_tensors(tmp_path / "x.safetensors", "one/").tensors.keys() == {"a", "b"}


def test_tensors_of_every_make(tmp_path: Path):
    base = torch.arange(30.0)
    tensors = {
        "transposed": base.view(5, 6).t(),
        "view": base.view(5, 6),
        "base": base,
        "strided": base[::7],
        "empty": torch.empty(0, 3),
        "empty too": torch.empty(0, 3),
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "expanded": torch.ones(1).expand(4),
        "parameter": nn.Parameter(torch.ones(2)),
        "half": torch.ones(3, dtype=torch.bfloat16),
    }
    write_tensors(tmp_path / "x.safetensors", tensors)
    read = read_tensors(tmp_path / "x.safetensors").tensors
    assert read.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert read[name].dtype == tensor.dtype
        assert torch.equal(read[name], tensor), name


def test_a_folder_that_is_none(tmp_path: Path):
    assert message(tmp_path / "runs") == f"{tmp_path / 'runs'} is not a folder"
    (tmp_path / "file").write_text("")
    assert message(tmp_path / "file") == f"{tmp_path / 'file'} is a file, not a run folder"


def test_no_config(tmp_path: Path):
    start = f"{tmp_path} has no config.json: no model was ever saved there; "
    assert message(tmp_path) == f"{start}it is empty"
    for index in range(11):
        (tmp_path / f"notes-{index:02d}.txt").write_text("")
    listed = ", ".join(f"notes-{index:02d}.txt" for index in range(8))
    assert message(tmp_path) == f"{start}it holds {listed} and 3 more"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            b'{"format": "foveate/2", ',
            "config.json is damaged: Expecting property name enclosed in double quotes: line 1",
        ),
        (b"", "config.json is damaged: Expecting value: line 1 column 1"),
        (b'{"format": "\xff"}', "config.json is damaged: 'utf-8' codec can't decode byte 0xff in position 12"),
        (b"[1, 2]", "config.json is damaged: a JSON object was expected, not list"),
        (b"[" * 100_000, "config.json is damaged: lists or tables are nested too deeply"),
        (
            b'{"format": "foveate/3"}',
            "config.json has format 'foveate/3'; this version of foveate reads 'foveate/2' only",
        ),
        (
            b'{"format": "foveate/1"}',
            "this version of foveate reads 'foveate/2' only; commit b441e8c of foveate reads it",
        ),
        (b'{"model": 3}', "config.json has format None; this version"),
    ],
)
def test_a_damaged_config(tmp_path: Path, content: bytes, expected: str):
    saved(tmp_path)
    (tmp_path / "config.json").write_bytes(content)
    assert expected in message(tmp_path)


def test_no_weights_or_no_words(tmp_path: Path):
    saved(tmp_path)
    loaded = run_dir.load(tmp_path)
    with pytest.raises(UserError, match=r"has no tokenizer.json; it holds config.json, model.safetensors, words.txt"):
        loaded.path("tokenizer.json")
    (tmp_path / "model.safetensors").unlink()
    assert message(tmp_path) == f"{tmp_path} has no model.safetensors; it holds config.json, words.txt"


@pytest.mark.parametrize("length", [0, 3, 8, 200, -1])
def test_truncated_weights(tmp_path: Path, length: int):
    saved(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:length])
    assert f"model.safetensors is truncated or damaged ({weights.stat().st_size:,} bytes): " in message(tmp_path)


def test_weights_that_are_a_pickle_are_never_opened_as_one(tmp_path: Path):
    saved(tmp_path)
    torch.save({"embedding.weight": torch.ones(3)}, tmp_path / "model.safetensors")
    assert "model.safetensors is truncated or damaged" in message(tmp_path)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (
            Tied(11),
            r"'embedding.weight' is \(13, 7\) there, but \(11, 7\) in the model: probably config.json and model.s",
        ),
        (nn.Embedding(13, 7), r"lacks tensor 'weight': probably"),
        (nn.Sequential(), r"has the unknown tensor 'count' and 3 more: probably"),
    ],
)
def test_weights_of_another_model(tmp_path: Path, model: nn.Module, expected: str):
    saved(tmp_path)
    with pytest.raises(UserError, match=expected):
        run_dir.load(tmp_path).fill(model)


@pytest.fixture
def run_folder(tmp_path: Path) -> tuple[Path, Tied]:
    return tmp_path, saved(tmp_path)


def test_no_space_left_keeps_what_was_there(run_folder: tuple[Path, Tied], full_disk: Callable[[int], Any]):
    folder, model = run_folder
    message = rf"^could not write model.safetensors in {folder}: File too large \(os error 27\)$"
    with pytest.raises(UserError, match=message), full_disk(300):
        saved(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors", "words.txt"]
    other = Tied()
    run_dir.load(folder).fill(other)
    assert torch.equal(other.head.bias, model.head.bias)


def test_no_space_left_for_a_tokenizer(tmp_path: Path, full_disk: Callable[[int], Any]):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"word {index}": index for index in range(101)}))
    message = r"^could not write tokenizer.json in .*: File too large \(os error 27\)$"
    with pytest.raises(UserError, match=message), full_disk(300):
        run_dir.save(tmp_path, {}, {}, {"tokenizer.json": lambda path: tokenizer.save(str(path))})
    assert not list(tmp_path.iterdir())


def test_a_reader_of_the_old_file_never_sees_the_new_one(tmp_path: Path):
    saved(tmp_path, title="old")
    with (tmp_path / "config.json").open(encoding="utf-8") as old:
        saved(tmp_path, title="new")
        assert json.load(old)["title"] == "old"
    assert run_dir.load(tmp_path).description["title"] == "new"


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path):
    def half(path: Path) -> None:
        path.write_text("half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_dir.save(tmp_path, {}, {}, {"x.txt": half})
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"could not write model.safetensors in .*file/run: Not a directory"):
        run_dir.save(tmp_path / "file" / "run", {}, Tied().state_dict())


def test_equal_tensors_give_equal_files(tmp_path: Path) -> None:
    tensors = {"b": torch.arange(5.0), "a": torch.arange(7.0)}
    metadata = {f"key {number}": "é" * number for number in range(11)}
    for number in range(5):
        write_tensors(tmp_path / f"{number}.safetensors", tensors, metadata)
    assert len({(tmp_path / f"{number}.safetensors").read_bytes() for number in range(5)}) == 1
    assert read_metadata(tmp_path / "0.safetensors")["key 3"] == "ééé"


@pytest.mark.parametrize(
    ("tied", "message"),
    [
        ("[1]", "not a table of names"),
        ('[[1, "x"]]', "not a table of names"),
        ('{"a": 1}', "not a table of names"),
        ('{"a": "b"}', "to 'b', which"),
    ],
)
def test_damaged_ties(tmp_path: Path, tied: str, message: str) -> None:
    save_file({"x": torch.ones(3)}, tmp_path / "x.safetensors", {"tied": tied})
    with pytest.raises(UserError, match=message):
        read_tensors(tmp_path / "x.safetensors")


def test_a_flipped_bit_in_the_weights_is_found(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 5)
    run_dir.save(tmp_path, {"task": "none"}, model.state_dict())
    content = bytearray((tmp_path / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(UserError, match=r"model\.safetensors is damaged: its content is not what was saved"):
        run_dir.load(tmp_path).fill(model)


def test_a_name_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not valid UTF-8, and cannot be noted in"):
        run_dir.save_unfinished(tmp_path, {"data": "bad\udcff.tsv"}, {})
