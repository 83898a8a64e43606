"""Reads GGUF files: metadata, and tensors as numpy arrays in single precision.

The types F32, F16, BF16, Q8_0 and Q4_1 are read here, others by the gguf package.

The format is that of ggml (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), version 3, little-endian.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from foveate.errors import UserError, show_value

Bytes = np.ndarray
"""Of the type uint8."""

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""The codes of types of metadata, as `struct` names them."""

_TEXT, _ARRAY = 8, 9

_DIMENSIONS = 4
"""Of a tensor, at most."""

_ENTRIES = 2**24
"""Values of a list in the metadata, at most: vocabularies have up to 300,000 entries."""

_BLOCK = 32
"""Numbers of a block that share a scale."""


@dataclass(frozen=True)
class TensorType:
    """The format of the numbers of a tensor: the bytes of each block, and the numbers in it."""

    name: str
    numbers: int
    bytes: int
    read: Callable[[Bytes], Float[np.ndarray, "N"]]


def _q8_0(blocks: Bytes) -> Float[np.ndarray, "N"]:
    """A half-precision scale and 32 signed bytes."""
    scale = blocks[:, :2].view(np.float16).astype(np.float32)
    return (scale * blocks[:, 2:].view(np.int8)).ravel()


def _q4_1(blocks: Bytes) -> Float[np.ndarray, "N"]:
    """A half-precision scale and minimum, and 32 numbers of 4 bits: the lower halves of 16 bytes, then the upper."""
    scale, least = (blocks[:, start : start + 2].view(np.float16).astype(np.float32) for start in (0, 2))
    codes = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], 1)
    return (scale * codes + least).ravel()


def _bf16(blocks: Bytes) -> Float[np.ndarray, "N"]:
    """The upper halves of numbers in single precision."""
    return (blocks.view(np.uint16).astype(np.uint32) << 16).view(np.float32).ravel()


TYPES = {
    0: TensorType("F32", 1, 4, lambda blocks: blocks.view(np.float32).ravel()),
    1: TensorType("F16", 1, 2, lambda blocks: blocks.view(np.float16).astype(np.float32).ravel()),
    3: TensorType("Q4_1", _BLOCK, 20, _q4_1),
    8: TensorType("Q8_0", _BLOCK, 34, _q8_0),
    30: TensorType("BF16", 1, 2, _bf16),
}
"""The types that are read here, by their codes."""


def tensor_type(code: int) -> TensorType:
    """The type of a code. Raises UserError for one that nobody knows, or that needs a missing package."""
    if code in TYPES:
        return TYPES[code]
    try:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
        from gguf.quants import dequantize
    except ModuleNotFoundError:
        known = ", ".join(kind.name for kind in TYPES.values())
        more = f"foveate reads {known}, and others with: pip install 'foveate[gguf]'"
        raise UserError(f"the tensor type {code}; {more}") from None
    try:
        kind = GGMLQuantizationType(code)
        numbers, size = GGML_QUANT_SIZES[kind]
        dequantize(np.zeros((1, size), np.uint8), kind)
    except (ValueError, KeyError, NotImplementedError):
        raise UserError(f"the tensor type {code}, which the gguf package cannot read") from None
    return TensorType(kind.name, numbers, size, lambda blocks: np.asarray(dequantize(blocks, kind), np.float32).ravel())


@dataclass
class GGUF:
    """The content of a file; tensors are decoded when they are asked for."""

    metadata: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]
    """Rows first, as torch has them."""
    _places: dict[str, tuple[TensorType, int]]
    _data: Bytes

    def tensor(self, name: str) -> Float[np.ndarray, "..."]:
        """A tensor in single precision. Raises UserError where it is not whole."""
        (kind, start), shape = self._places[name], self.shapes[name]
        if math.prod(shape) % kind.numbers:
            raise UserError(f"the GGUF file is damaged: '{name}' is not a whole number of blocks of {kind.numbers}")
        size = math.prod(shape) // kind.numbers * kind.bytes
        blocks = self._data[start : start + size]
        if len(blocks) < size:
            raise UserError(f"the GGUF file is truncated: '{name}' is not whole")
        return kind.read(np.ascontiguousarray(blocks).reshape(-1, kind.bytes)).reshape(shape)


def read_gguf(path: Path) -> GGUF:
    """The content of a file. Raises UserError for a damaged file, another version or a type that is not read."""
    data = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    reader = _Reader(data, path)
    try:
        return reader.read()
    except UserError:
        raise
    except (struct.error, LookupError, ValueError, TypeError, ArithmeticError, RecursionError):
        raise UserError(f"{path} is truncated or damaged ({len(data):,} bytes)") from None


class _Reader:
    """Reads from the beginning of a file on."""

    def __init__(self, data: Bytes, path: Path) -> None:
        self.data, self.path, self.at = data, path, 0
        self.bytes = data.data

    def read(self) -> GGUF:
        magic, version = bytes(self.data[:4]), struct.unpack_from("<I", self.bytes, 4)[0]
        if magic != b"GGUF" or version not in (2, 3):
            raise UserError(f"{self.path} is not a GGUF file of version 2 or 3")
        self.at = 8
        tensors, entries = self.number("Q"), self.number("Q")
        metadata = {self.text(): self.value(self.number("I")) for _ in range(entries)}
        shapes, places = {}, {}
        for _ in range(tensors):
            name = self.text()
            shapes[name] = self.shape()
            code, start = self.number("I"), self.number("Q")
            try:
                places[name] = tensor_type(code), start
            except UserError as error:
                raise UserError(f"{self.path}: '{name}' has {error}") from None
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 1 <= alignment <= 2**20:
            raise UserError(f"{self.path} has the alignment {show_value(alignment)}, which cannot be")
        begin = -(-self.at // alignment) * alignment
        return GGUF(metadata, shapes, places, self.data[begin:])

    def number(self, code: str) -> Any:
        (value,) = struct.unpack_from(f"<{code}", self.bytes, self.at)
        self.at += struct.calcsize(f"<{code}")
        return value

    def shape(self) -> tuple[int, ...]:
        """The sizes of a tensor, rows first. Raises ValueError for what no tensor has."""
        sizes = tuple(self.number("Q") for _ in range(self.number("I")))[::-1]
        if len(sizes) > _DIMENSIONS or math.prod(max(size, 1) for size in sizes) >= 2**63:
            raise ValueError
        return sizes

    def text(self) -> str:
        length = self.number("Q")
        start, self.at = self.at, self.at + length
        if self.at > len(self.data):
            raise IndexError
        return bytes(self.data[start : self.at]).decode()

    def value(self, kind: int) -> Any:
        """A value of metadata: a number, a text or a list of them."""
        if kind == _TEXT:
            return self.text()
        if kind == _ARRAY:
            inner, count = self.number("I"), self.number("Q")
            if count > _ENTRIES:
                raise ValueError
            if inner in _NUMBERS:
                numbers = struct.unpack_from(f"<{count}{_NUMBERS[inner]}", self.bytes, self.at)
                self.at += struct.calcsize(f"<{count}{_NUMBERS[inner]}")
                return list(numbers)
            return [self.value(inner) for _ in range(count)]
        return self.number(_NUMBERS[kind])
