"""GGUF files: numbers by hand, and what is wrong with a file."""

import importlib.util
import os
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from foveate.errors import UserError
from foveate.interop.gguf import read_gguf
from foveate.interop.gguf_llama import convert, halves_from_pairs


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def written(path: Path, tensors: list[tuple[str, tuple[int, ...], int, bytes]], **metadata: int | str | list) -> Path:
    """A GGUF file; each tensor's data begins at a multiple of 32."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for name, value in metadata.items():
        if isinstance(value, list):
            head += text(name) + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
        elif isinstance(value, str):
            head += text(name) + struct.pack("<I", 8) + text(value)
        else:
            head += text(name) + struct.pack("<Ii", 5, value)
    data = b""
    for name, shape, kind, content in tensors:
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, len(data))
        data += content + bytes(-len(content) % 32)
    path.write_bytes(head + bytes(-len(head) % 32) + data)
    return path


def entry(name: str, kind: int, value: bytes) -> bytes:
    """A GGUF file with one entry of metadata."""
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text(name) + struct.pack("<I", kind) + value


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is truncated or damaged"),
        (entry("general.alignment", 4, struct.pack("<I", 0)), "has the alignment 0, which cannot be"),
        (entry("general.alignment", 8, text("x")), "has the alignment 'x', which cannot be"),
        (entry("general.alignment", 6, struct.pack("<f", float("nan"))), "has the alignment nan, which cannot be"),
        (entry("many", 9, struct.pack("<IQ", 4, 2**63)), "is truncated or damaged"),
        (entry("many", 9, struct.pack("<IQ", 8, 2**63)), "is truncated or damaged"),
        (entry("deep", 9, struct.pack("<IQ", 9, 1) * 50_000), "is truncated or damaged"),
        (entry("text", 8, struct.pack("<Q", 2**64 - 1)), "is truncated or damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**63, 0), "is truncated or damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("a") + struct.pack("<IQQIQ", 2, 0, 2**63, 0, 0), "is truncated"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("a") + struct.pack("<I70QIQ", 70, *[0] * 72), "is truncated"),
    ],
)
def test_a_header_that_claims_what_is_not_there(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_gguf(tmp_path / "a.gguf")


def test_a_tensor_that_is_not_whole(tmp_path: Path) -> None:
    file = read_gguf(written(tmp_path / "a.gguf", [("w", (31,), 8, bytes(34))]))
    with pytest.raises(UserError, match=r"not a whole number of blocks of 32|'w' is not whole"):
        file.tensor("w")


def test_a_list_that_would_take_all_memory(tmp_path: Path) -> None:
    """Of whole numbers of one byte, each of which Python keeps in 8 bytes and more."""
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("many") + struct.pack("<IIQ", 9, 0, 2**25)
    (tmp_path / "a.gguf").write_bytes(head)
    os.truncate(tmp_path / "a.gguf", 2**26)
    with pytest.raises(UserError, match=r"a\.gguf is truncated or damaged"):
        read_gguf(tmp_path / "a.gguf")


@pytest.mark.parametrize("shape", [(2**40, 2**30), (2**63, 2)])
def test_a_shape_that_no_array_has(shape: tuple[int, ...], tmp_path: Path) -> None:
    path = written(tmp_path / "a.gguf", [("w", shape, 8, bytes(34))])
    with pytest.raises(UserError, match=r"a.gguf is truncated or damaged \(\d+ bytes\)$"):
        read_gguf(path)


def test_a_file_of_another_model(tmp_path: Path) -> None:
    file = read_gguf(written(tmp_path / "a.gguf", [("w", (1,), 0, bytes(4))], width=3))
    with pytest.raises(UserError, match="the GGUF file holds a model of the kind None; foveate reads llama"):
        convert(file, tmp_path)


def test_numbers_of_each_type_and_metadata(tmp_path: Path) -> None:
    plain = np.arange(6, dtype=np.float32)
    q8 = struct.pack("<e32b", 0.5, *range(-16, 16))
    # 4 bits: the lower halves of 16 bytes are the first 16 numbers, the upper ones the last
    q4 = struct.pack("<ee16B", 0.25, -1.0, *(number + 16 * (15 - number) for number in range(16)))
    file = read_gguf(
        written(
            tmp_path / "a.gguf",
            [
                ("plain", (2, 3), 0, plain.tobytes()),
                ("half", (3,), 1, np.array([1, 2, 3], np.float16).tobytes()),
                ("eight", (1, 32), 8, q8),
                ("four", (2, 32), 3, q4 + q4),
            ],
            width=-7,
            name="clef",
            words=["a", "é"],
        )
    )
    assert file.metadata == {"width": -7, "name": "clef", "words": ["a", "é"]}
    assert file.tensor("plain").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert file.tensor("half").tolist() == [1, 2, 3]
    assert file.tensor("eight")[0].tolist() == [number / 2 for number in range(-16, 16)]
    numbers = [*range(16), *range(15, -1, -1)]
    assert file.tensor("four").tolist() == [[number / 4 - 1 for number in numbers]] * 2


def test_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.gguf"
    written(path, [("x", (2, 32), 99, bytes(64))])
    if importlib.util.find_spec("gguf") is not None:
        with pytest.raises(UserError, match=r"a.gguf: 'x' has the tensor type 99, which the gguf package cannot read$"):
            read_gguf(path)
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(UserError, match=r"'x' has the tensor type 99; foveate reads F32, .*install 'foveate\[gguf\]'$"):
        read_gguf(path)
    written(path, [("x", (2, 3), 0, bytes(24))])
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(UserError, match="truncated: 'x' is not whole"):
        read_gguf(path).tensor("x")
    path.write_bytes(whole[:40])
    with pytest.raises(UserError, match=r"a.gguf is truncated or damaged \(40 bytes\)$"):
        read_gguf(path)
    path.write_bytes(b"PK" + whole)
    with pytest.raises(UserError, match=r"a.gguf is not a GGUF file of version 2 or 3$"):
        read_gguf(path)


def test_rows_of_pairs_become_halves() -> None:
    """Two heads of width 6: rows 0 and 1 of a head turn together in the file, rows 0 and 3 in our models."""
    rows = torch.arange(12.0)[:, None].expand(12, 5)
    assert halves_from_pairs(rows, 2)[:, 0].tolist() == [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]
