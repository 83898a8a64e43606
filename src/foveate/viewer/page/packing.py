"""Compresses the weights of a panel into bytes, and restores them.

Weights are stored as logarithms, so that small and large weights have the same relative error. Of the codes of b bits,
0 is the weight 0; the others divide the logarithmic range from 2^-20 to 1 evenly. Smaller positive weights are stored
as 2^-20. Numbers that are no weights are divided by the largest of them, the panel's unit. The keys of a query are
stored as the gaps between them, low and high bytes separately. Everything is deflated, with a separate code for each
plane of bytes; the browser inflates it with `DecompressionStream`.

A panel has two blocks, and `points` if its queries look at points of feature maps: `maps`, one byte for each cell of
its small maps, and `rows`:

    a panel with every weight    weights (H, T, S) of 16 bits; no `maps`, since they follow from the weights
    any other panel              gaps (H, k, T), weights (H, k, T), rest (H, T), of 12 bits, or 10 for long maps
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from foveate.attention.points import Grids
from foveate.errors import UserError
from foveate.sight.measured_look import DIFFERENCE
from foveate.viewer.document import CELLS, LONG, Panel, TopWeights, pool
from foveate.viewer.point_panel import PointPanel

RANGE = 20.0
"""The smallest positive weight that is stored is 2 to the power of minus this."""

FIRST, LAST, PLACE_CODES = -0.5, 1.5, 2**16 - 1
"""Points are stored from one place to another, as shares of the image; those farther outside at the nearest of them."""

SIGNED = DIFFERENCE
"""What panels with numbers below 0 show; their signs are in a block of their own."""

MAP_BITS, EXACT_BITS, ROW_BITS, LONG_ROW_BITS = 8, 16, 12, 10


@dataclass(frozen=True)
class PanelShape:
    """The sizes of a panel, which determine the lengths of its blocks."""

    heads: int
    queries: int
    keys: int
    kept: int

    @property
    def exact(self) -> bool:
        return self.kept == self.keys

    @property
    def bits(self) -> int:
        """Number of bits of each weight in the rows."""
        if self.exact:
            return EXACT_BITS
        return ROW_BITS if max(self.queries, self.keys) <= LONG else LONG_ROW_BITS

    @property
    def maps(self) -> tuple[int, int, int]:
        return self.heads, min(self.queries, CELLS), min(self.keys, CELLS)

    @property
    def rows(self) -> tuple[int, int, int]:
        """The queries are last, so that similar values are adjacent, which compresses better."""
        return self.heads, self.kept, self.queries


def precision(bits: int) -> float:
    """Maximum relative error of a weight of at least 2^-20."""
    return 2.0 ** (RANGE / (2**bits - 2) / 2) - 1


def panel_shape(panel: Panel) -> PanelShape:
    return PanelShape(panel.heads, panel.queries.count, panel.keys.count, panel.rows.keys.shape[2])


def pack(panel: Panel) -> dict[str, bytes]:
    """The blocks of a panel, by name."""
    found = _pack_weights(panel)
    if panel.points is not None:
        found["points"] = pack_points(panel.points)
    if panel.shows == SIGNED:
        numbers = [panel.rows.weights] if panel_shape(panel).exact else [panel.rows.weights, panel.maps]
        found["signs"] = _deflate([_signs(*numbers)], [1])
    return found


def _signs(*numbers: np.ndarray) -> np.ndarray:
    """Which numbers are below 0, of all that a block has, in its order."""
    return np.concatenate([(values < 0).ravel() for values in numbers]).astype(np.uint32)


def _pack_weights(panel: Panel) -> dict[str, bytes]:
    shape, rows, unit = panel_shape(panel), panel.rows, panel.unit
    if shape.exact:
        return {"rows": _deflate([_code(rows.weights / unit, shape.bits)], [_bytes(2**shape.bits - 1)])}
    previous = np.concatenate([np.full_like(rows.keys[..., :1], -1), rows.keys[..., :-1]], 2)
    gaps = np.where(rows.keys < 0, 0, rows.keys - previous - 1)
    numbers = [gaps.astype(np.uint32), _code(rows.weights / unit, shape.bits)]
    numbers = [each.transpose(0, 2, 1) for each in numbers]
    sizes = [_bytes(shape.keys - 1), _bytes(2**shape.bits - 1)]
    rest = _code(rows.rest / unit, shape.bits)
    return {
        "maps": _deflate([_code(panel.maps / unit, MAP_BITS)], [1]),
        "rows": _deflate([*numbers, rest], [*sizes, sizes[1]]),
    }


def pack_points(points: PointPanel) -> bytes:
    """The block of a panel's points: from the left, from the top, and weights, (H, T, N), 16 bits each."""
    return _deflate([*map(_place_code, np.moveaxis(points.places, -1, 0)), _code(points.weights, EXACT_BITS)], [2] * 3)


def unpack_points(block: bytes, shape: tuple[int, int, int], grids: Grids) -> PointPanel:
    """Restore the points of a panel. Raises UserError for a block of another length."""
    *places, weights = _inflate(block, [shape] * 3, [2] * 3)
    found = [FIRST + code.astype(np.float32) * ((LAST - FIRST) / PLACE_CODES) for code in places]
    return PointPanel(grids, np.stack(found, -1), _decode(weights, EXACT_BITS))


def _place_code(shares: np.ndarray) -> np.ndarray:
    return np.round((shares.clip(FIRST, LAST) - FIRST) * (PLACE_CODES / (LAST - FIRST))).astype(np.uint32)


def unpack(
    shape: PanelShape, blocks: Mapping[str, bytes], unit: float = 1.0
) -> tuple[TopWeights, Float32[np.ndarray, "H R C"]]:
    """Restore the rows and small maps from the blocks of `pack`. Raises UserError for blocks of another length."""
    rows, maps = _unpack_shares(shape, blocks)
    weights, scale = rows.weights, np.float32(unit)
    if "signs" in blocks:
        count = weights.size
        (signs,) = _inflate(blocks["signs"], [(count if shape.exact else count + maps.size,)], [1])
        factors = 1 - 2 * np.minimum(signs, 1).astype(np.float32)
        weights = weights * factors[:count].reshape(weights.shape)
        maps = pool(weights) if shape.exact else maps * factors[count:].reshape(maps.shape)
    return TopWeights(rows.keys, weights * scale, rows.rest * scale), maps * scale


def _unpack_shares(shape: PanelShape, blocks: Mapping[str, bytes]) -> tuple[TopWeights, Float32[np.ndarray, "H R C"]]:
    code = _bytes(2**shape.bits - 1)
    if shape.exact:
        full = (shape.heads, shape.queries, shape.keys)
        weights = _decode(_inflate(blocks["rows"], [full], [code])[0], shape.bits)
        keys: np.ndarray = np.broadcast_to(np.arange(shape.keys, dtype=np.int32), full)
        return TopWeights(keys, weights, np.zeros(full[:2], np.float32)), pool(weights)
    maps = _decode(_inflate(blocks["maps"], [shape.maps], [1])[0], MAP_BITS)
    parts = [shape.rows, shape.rows, (shape.heads, shape.queries)]
    gaps, codes, rest = _inflate(blocks["rows"], parts, [_bytes(shape.keys - 1), code, code])
    weights = _decode(codes.transpose(0, 2, 1), shape.bits)
    keys = gaps.transpose(0, 2, 1).astype(np.int32).cumsum(2, dtype=np.int32) + np.arange(shape.kept, dtype=np.int32)
    return TopWeights(np.where(weights > 0, keys, -1).astype(np.int32), weights, _decode(rest, shape.bits)), maps


def _code(weights: np.ndarray, bits: int) -> np.ndarray:
    steps = 2**bits - 2
    power = np.log2(np.clip(np.abs(weights.astype(np.float64)), 2**-RANGE, 1))
    return np.where(weights != 0, 1 + np.round((1 + power / RANGE) * steps), 0).astype(np.uint32)


def _decode(codes: np.ndarray, bits: int) -> np.ndarray:
    table = 2.0 ** (RANGE * ((np.arange(2**bits - 1) / (2**bits - 2)) - 1))
    return np.concatenate([[0], table]).astype(np.float32)[np.minimum(codes, 2**bits - 1)]


def _bytes(greatest: int) -> int:
    """Number of bytes of an integer that is at most `greatest`."""
    return max(1, (greatest.bit_length() + 7) // 8)


def _deflate(numbers: list[np.ndarray], sizes: list[int]) -> bytes:
    """Deflate planes of bytes, low bytes first, with a flush between them, so that each plane has its own code."""
    packer, found = zlib.compressobj(6, memLevel=9), b""
    for values, size in zip(numbers, sizes, strict=True):
        for place in range(size):
            plane = (values >> (8 * place)).astype(np.uint8)
            found += packer.compress(np.ascontiguousarray(plane).tobytes()) + packer.flush(zlib.Z_SYNC_FLUSH)
    return found + packer.flush()


def _inflate(block: bytes, shapes: list[tuple[int, ...]], sizes: list[int]) -> list[np.ndarray]:
    """Reverse `_deflate`. Reads no more than the expected length, whatever a damaged file contains."""
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
    return numbers
