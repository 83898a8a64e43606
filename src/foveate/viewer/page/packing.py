"""How the numbers of a panel become few bytes, and come back.

Weights are kept by their logarithm, so that small ones are as exact as large ones: of b bits, 0 stands for no weight,
and the others part the range from 2^-20 to 1 evenly. Less than 2^-20 is kept as 2^-20: a weight that is there stays
there. The keys of a query are kept as the gaps between them, their low and high bytes apart. Everything is deflated,
each plane of bytes with a code of its own; the browser inflates it with `DecompressionStream`.

A panel has two blocks: `maps`, one byte for each cell of its small maps, and `rows`:

    a panel with every weight    weights (H, T, S) of 16 bits; it has no `maps`, which follow from them
    another                      gaps (H, k, T), weights (H, k, T), rest (H, T), of 12 bits, or 10 of long maps
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from foveate.errors import UserError
from foveate.viewer.document import CELLS, LONG, Panel, Rows, pooled

RANGE = 20.0
"""The smallest weight that is told from smaller ones is two to the power of minus this."""

MAP_BITS, EXACT_BITS, ROW_BITS, LONG_ROW_BITS = 8, 16, 12, 10


@dataclass(frozen=True)
class Shape:
    """How large the parts of a panel are, which says how long its blocks are."""

    heads: int
    queries: int
    keys: int
    kept: int

    @property
    def exact(self) -> bool:
        return self.kept == self.keys

    @property
    def bits(self) -> int:
        """Of each weight of the rows."""
        if self.exact:
            return EXACT_BITS
        return ROW_BITS if max(self.queries, self.keys) <= LONG else LONG_ROW_BITS

    @property
    def maps(self) -> tuple[int, int, int]:
        return self.heads, min(self.queries, CELLS), min(self.keys, CELLS)

    @property
    def rows(self) -> tuple[int, int, int]:
        """With the places of a query's keys last but one: like stands beside like, which deflates better."""
        return self.heads, self.kept, self.queries


def precision(bits: int) -> float:
    """By which part of itself a weight may differ from what went in, if it is at least 2^-20."""
    return 2.0 ** (RANGE / (2**bits - 2) / 2) - 1


def shape_of(panel: Panel) -> Shape:
    return Shape(panel.heads, panel.queries.count, panel.keys.count, panel.rows.keys.shape[2])


def pack(panel: Panel) -> dict[str, bytes]:
    """The blocks of a panel, by name."""
    shape, rows = shape_of(panel), panel.rows
    if shape.exact:
        return {"rows": _deflate([_code(rows.weights, shape.bits)], [_bytes(2**shape.bits - 1)])}
    previous = np.concatenate([np.full_like(rows.keys[..., :1], -1), rows.keys[..., :-1]], 2)
    gaps = np.where(rows.keys < 0, 0, rows.keys - previous - 1)
    numbers = [gaps.astype(np.uint32), _code(rows.weights, shape.bits)]
    numbers = [each.transpose(0, 2, 1) for each in numbers]
    sizes = [_bytes(shape.keys - 1), _bytes(2**shape.bits - 1)]
    rest = _code(rows.rest, shape.bits)
    return {
        "maps": _deflate([_code(panel.maps, MAP_BITS)], [1]),
        "rows": _deflate([*numbers, rest], [*sizes, sizes[1]]),
    }


def unpack(shape: Shape, blocks: Mapping[str, bytes]) -> tuple[Rows, Float32[np.ndarray, "H R C"]]:
    """The rows and the small maps that `pack` made blocks of. Raises UserError for blocks of another length."""
    code = _bytes(2**shape.bits - 1)
    if shape.exact:
        full = (shape.heads, shape.queries, shape.keys)
        weights = _decode(_inflate(blocks["rows"], [full], [code])[0], shape.bits)
        keys: np.ndarray = np.broadcast_to(np.arange(shape.keys, dtype=np.int32), full)
        return Rows(keys, weights, np.zeros(full[:2], np.float32)), pooled(weights)
    maps = _decode(_inflate(blocks["maps"], [shape.maps], [1])[0], MAP_BITS)
    parts = [shape.rows, shape.rows, (shape.heads, shape.queries)]
    gaps, codes, rest = _inflate(blocks["rows"], parts, [_bytes(shape.keys - 1), code, code])
    weights = _decode(codes.transpose(0, 2, 1), shape.bits)
    keys = gaps.transpose(0, 2, 1).astype(np.int32).cumsum(2, dtype=np.int32) + np.arange(shape.kept, dtype=np.int32)
    return Rows(np.where(weights > 0, keys, -1).astype(np.int32), weights, _decode(rest, shape.bits)), maps


def _code(weights: np.ndarray, bits: int) -> np.ndarray:
    steps = 2**bits - 2
    power = np.log2(np.clip(weights.astype(np.float64), 2**-RANGE, 1))
    return np.where(weights > 0, 1 + np.round((1 + power / RANGE) * steps), 0).astype(np.uint32)


def _decode(codes: np.ndarray, bits: int) -> np.ndarray:
    table = 2.0 ** (RANGE * ((np.arange(2**bits - 1) / (2**bits - 2)) - 1))
    return np.concatenate([[0], table]).astype(np.float32)[np.minimum(codes, 2**bits - 1)]


def _bytes(greatest: int) -> int:
    """How many bytes a number takes that is no larger than this."""
    return max(1, (greatest.bit_length() + 7) // 8)


def _deflate(numbers: list[np.ndarray], sizes: list[int]) -> bytes:
    """Planes of bytes, the low ones first: flushed between them, so that each plane has its own code."""
    packer, found = zlib.compressobj(6, memLevel=9), b""
    for values, size in zip(numbers, sizes, strict=True):
        for place in range(size):
            plane = (values >> (8 * place)).astype(np.uint8)
            found += packer.compress(np.ascontiguousarray(plane).tobytes()) + packer.flush(zlib.Z_SYNC_FLUSH)
    return found + packer.flush()


def _inflate(block: bytes, shapes: list[tuple[int, ...]], sizes: list[int]) -> list[np.ndarray]:
    """What `_deflate` was given. Never more than it must be, whatever a damaged file says."""
    lengths = [int(np.prod(shape)) for shape in shapes]
    expected = sum(length * size for length, size in zip(lengths, sizes, strict=True))
    try:
        unpacker = zlib.decompressobj()
        found = unpacker.decompress(block, expected + 1)
    except zlib.error as error:
        raise UserError(f"the page is damaged: {error}") from None
    if len(found) != expected:
        raise UserError(f"the page is damaged: a block holds {len(found)} bytes or more where {expected} must be")
    planes, numbers, start = np.frombuffer(found, np.uint8), [], 0
    for shape, length, size in zip(shapes, lengths, sizes, strict=True):
        parts = planes[start : start + length * size].reshape(size, *shape).astype(np.uint32)
        numbers.append(sum(part << (8 * place) for place, part in enumerate(parts)))
        start += length * size
    return numbers  # type: ignore[return-value]
