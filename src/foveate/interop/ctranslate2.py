"""Reads `model.bin` files of CTranslate2 (https://github.com/OpenNMT/CTranslate2), version 6: names and tensors."""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from foveate.errors import UserError

VERSION = 6

TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
"""The types of tensors that are read, by their codes."""

MOST_DIMENSIONS = 8

SCALE = "_scale"
"""What the name of the scales of an int8 tensor ends with; the tensor is divided by them, row by row."""


@dataclass
class CTranslate2File:
    """The content of a file."""

    kind: str
    """What the model is, such as "WhisperSpec"."""
    tensors: dict[str, np.ndarray]
    """As they are stored. Single bytes that are settings are here too."""

    def tensor(self, name: str) -> Float[np.ndarray, "..."]:
        """A tensor in single precision. Raises UserError where it is missing or of a type that is not read."""
        if name not in self.tensors:
            raise UserError(f"the {self.kind} has no tensor '{name}'")
        stored = self.tensors[name]
        if stored.dtype == np.int8 and name + SCALE in self.tensors:
            scale = self.tensors[name + SCALE].astype(np.float32)
            return stored.astype(np.float32) / scale.reshape(-1, *[1] * (stored.ndim - 1))
        if not np.issubdtype(stored.dtype, np.floating):
            raise UserError(f"'{name}' is of the type {stored.dtype}, which is not a floating-point number")
        return stored.astype(np.float32)


def read_ctranslate2(path: Path) -> CTranslate2File:
    """The content of a file. Raises UserError for a damaged file, another version or a type that is not read."""
    data = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    try:
        return _Reader(data, path).read()
    except (struct.error, IndexError, UnicodeDecodeError):
        raise UserError(f"{path} is truncated or damaged ({len(data):,} bytes)") from None


class _Reader:
    """Reads from the beginning of a file on. No length in it is trusted before it is compared with what is left."""

    def __init__(self, data: np.ndarray, path: Path) -> None:
        self.data, self.path, self.at = data, path, 0

    def read(self) -> CTranslate2File:
        if (version := self.number("I")) != VERSION:
            raise UserError(f"{self.path} is not a CTranslate2 file of version {VERSION}: it begins with {version}")
        kind, _revision = self.text(), self.number("I")
        tensors = {}
        for _ in range(self.number("I")):
            name = self.text()
            tensors[name] = self.tensor(name)
        for _ in range(self.number("I")):
            alias, name = self.text(), self.text()
            if name not in tensors:
                raise UserError(f"{self.path}: '{alias}' stands for '{name}', which is not there")
            tensors[alias] = tensors[name]
        return CTranslate2File(kind, tensors)

    def tensor(self, name: str) -> np.ndarray:
        dimensions = self.number("B")
        if dimensions > MOST_DIMENSIONS:
            raise UserError(f"{self.path}: '{name}' has {dimensions} dimensions; at most {MOST_DIMENSIONS} are read")
        shape = tuple(self.number("I") for _ in range(dimensions))
        code, size = self.number("B"), self.number("I")
        if code not in TYPES:
            raise UserError(f"{self.path}: '{name}' has the type {code}; foveate reads {', '.join(map(str, TYPES))}")
        kind = np.dtype(TYPES[code])
        if math.prod(shape) * kind.itemsize != size:
            raise UserError(f"{self.path}: '{name}' has {size:,} bytes, but {shape} numbers of {kind.itemsize} bytes")
        return np.frombuffer(self.take(size), kind).reshape(shape)

    def number(self, code: str) -> Any:
        (value,) = struct.unpack(f"<{code}", self.take(struct.calcsize(code)))
        return value

    def text(self) -> str:
        return self.take(self.number("H")).rstrip(b"\0").decode()

    def take(self, size: int) -> bytes:
        start, self.at = self.at, self.at + size
        if self.at > len(self.data):
            raise IndexError
        return self.data[start : self.at].tobytes()
