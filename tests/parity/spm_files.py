"""Tiny files of SentencePiece."""

import struct
from collections.abc import Sequence
from pathlib import Path


def unigram_file(path: Path, pieces: Sequence[str], kind: int = 1) -> None:
    """Write a model of pieces, the longest the likeliest; the first three are unknown, start and end.

    `kind` is 1 for unigrams and 2 for byte pairs.
    """
    kinds = {0: 2, 1: 3, 2: 3}
    message = b""
    for number, piece in enumerate(pieces):
        score = 0.0 if number < 3 else (-1.0 - 0.125 * number + len(piece) if kind == 1 else float(-number))
        entry = _bytes(1, piece.encode()) + b"\x15" + struct.pack("<f", score) + _integer(3, kinds.get(number, 1))
        message += _bytes(1, entry)
    training = (
        _integer(3, kind) + _integer(40, 0) + _integer(41, 1) + _integer(42, 2) + _varint(43 << 3) + _varint(2**64 - 1)
    )
    message += _bytes(2, training)
    message += _bytes(3, _bytes(1, b"identity") + _integer(3, 1) + _integer(4, 1) + _integer(5, 1))
    path.write_bytes(message)


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value
