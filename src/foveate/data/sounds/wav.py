"""Reads WAV files of integers or floats, also those whose header is wrong about the length, as recorders to pipes write
it; writes WAV files of 16 bits."""

import math
import struct
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from foveate.errors import UserError
from foveate.files import check_ending, check_place, written

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
"""Codes of sample formats. With EXTENSIBLE the code is at another place of the header."""

LONGEST_HEADER = 2**20
"""Bytes of a chunk before the samples of a stream, at most."""


class WaveFormat(NamedTuple):
    code: int
    channels: int
    rate: int
    bits: int

    @property
    def frame_size(self) -> int:
        """Bytes of one sample of all channels."""
        return self.channels * self.bits // 8


def is_wav(data: bytes) -> bool:
    return data[:4] == b"RIFF" and data[8:12] == b"WAVE"


def decode_wav(data: bytes, name: str, longest: float = math.inf) -> tuple[Float32[np.ndarray, "N C"], int]:
    """The samples of each channel, integers as numbers from -1 to 1, and the sampling rate in Hz.

    `name` stands for the file in messages. Raises UserError for a damaged file, for compressed samples, and, before
    anything is decoded, for a sound of more than `longest` seconds.
    """
    header, samples = None, None
    for kind, content in _chunks(data):
        if kind == b"fmt ":
            header = _header(content, name)
        elif kind == b"data":
            samples = content
            break
    if header is None or samples is None:
        raise UserError(f"{name} is not a .wav file of integers (PCM) or floats: it is truncated")
    check_length(len(samples) // header.frame_size, header.rate, longest, name)
    return decode_samples(samples, header, name), header.rate


def check_length(frames: int, rate: int, longest: float, name: str) -> None:
    """Raise UserError for a sound of more than `longest` seconds."""
    if frames > longest * rate:
        raise UserError(f"{name} lasts {frames / rate:,.0f} seconds; the limit is {longest:g}: cut it")


def read_format(read: Callable[[int], bytes], name: str) -> WaveFormat:
    """The format of a stream, which is read up to its first sample. Raises UserError where it is no WAV."""

    def take(count: int) -> bytes:
        found = b""
        while len(found) < count:
            if not (more := read(count - len(found))):
                raise UserError(f"{name} is not a .wav stream of integers (PCM) or floats: it ends before its samples")
            found += more
        return found

    if not is_wav(take(12)):
        raise UserError(
            f"{name} is not a .wav stream: have arecord write one (-t wav), or give the rate of samples (--raw 16000)"
        )
    header = None
    while True:
        kind, size = struct.unpack("<4sI", take(8))
        if kind == b"data":
            break
        if size > LONGEST_HEADER:
            raise UserError(f"{name} is not a .wav stream of integers (PCM) or floats: a header has {size:,} bytes")
        content = take(size + size % 2)
        header = _header(memoryview(content), name) if kind == b"fmt " else header
    if header is None:
        raise UserError(f"{name} is not a .wav stream of integers (PCM) or floats: its header is missing")
    return header


def _chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """The chunks of a RIFF file after its first 12 bytes. A chunk ends with the file at the latest."""
    view, place = memoryview(data), 12
    while place + 8 <= len(data):
        kind, size = struct.unpack_from("<4sI", data, place)
        yield kind, view[place + 8 : place + 8 + size]
        place += 8 + size + size % 2


def _header(content: memoryview, name: str) -> WaveFormat:
    if len(content) < 16:
        raise UserError(f"{name} is not a .wav file of integers (PCM) or floats: its header is truncated")
    code, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", content)
    if code == EXTENSIBLE and len(content) >= 26:
        code = struct.unpack_from("<H", content, 24)[0]
    known = bits in (8, 16, 24, 32) if code == PCM else code == FLOAT and bits in (32, 64)
    if not known or not channels or not rate:
        raise UserError(
            f"{name} is not a .wav file of integers (PCM) or floats: "
            f"its header says format {code}, {bits} bits, {channels} channels, {rate} Hz"
        )
    return WaveFormat(code, channels, rate, bits)


def decode_samples(data: memoryview, header: WaveFormat, name: str) -> Float32[np.ndarray, "N C"]:
    width = header.bits // 8
    frames = len(data) // (width * header.channels)
    if not frames:
        raise UserError(f"{name} has no samples")
    data = data[: frames * header.channels * width]
    if header.code == FLOAT:
        values = np.frombuffer(data, f"<f{width}")
    elif width == 1:  # 8-bit samples are unsigned
        values = np.frombuffer(data, np.uint8) / 128.0 - 1
    else:
        padded = np.zeros((frames * header.channels, 4), np.uint8)
        padded[:, 4 - width :] = np.frombuffer(data, np.uint8).reshape(-1, width)
        values = padded.view("<i4")[:, 0] / 2**31
    return values.reshape(frames, header.channels).astype(np.float32)


def check_wave_file(path: Path) -> None:
    """Raise UserError for a place that no sound can be written to."""
    check_ending(path, ".wav")
    check_place(path)


def write_wave(path: Path, samples: Float32[np.ndarray, "N"], rate: int) -> None:
    """Write the samples of a sound, from -1 to 1, with 16 bits."""
    with written(path) as temporary, wave.open(str(temporary), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())
