"""Sound from a pipe: parts as they come, and what is wrong with a stream."""

import io
import struct

import numpy as np
import pytest

from foveate.data.sounds.stream import sounds_from_pipe
from foveate.errors import UserError

RATE = 8000


def stream(*parts: float, size: int = 2**31) -> bytes:
    """A WAV header as recorders to pipes write it, and tones of this many seconds; negative numbers are silences."""
    header = struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", size, b"WAVE", b"fmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16, b"data", size
    )
    sounds = []
    for seconds in parts:
        times = np.arange(round(abs(seconds) * RATE)) / RATE
        sounds.append(np.sin(2 * np.pi * 300 * times) * (9000 if seconds > 0 else 0))
    return header + np.concatenate([np.zeros(0), *sounds]).astype("<i2").tobytes()


def dribble(data: bytes) -> io.RawIOBase:
    """A pipe that gives 77 bytes at once, at most."""
    place = 0

    def read(count: int) -> bytes:
        nonlocal place
        found = data[place : place + min(count, 77)]
        place += len(found)
        return found

    return read


def test_parts_end_at_silences() -> None:
    """Two words with silences around them, then one that the stream ends in."""
    found = list(sounds_from_pipe(dribble(stream(-1.0, 0.4, -0.2, 0.4, -1.0, 0.3)), 10.0))
    assert len(found) == 2
    (first, words), (second, last) = found
    assert abs(first - 0.9) < 0.06
    assert abs(words.seconds - 1.2) < 0.06
    assert first + words.seconds <= second + 1e-6 <= 3.0
    assert abs(second + last.seconds - 3.3) < 0.06


def test_the_first_part_is_there_before_the_stream_ends() -> None:
    data, given = stream(0.4, -1.0, 0.4, -1.0), 0

    def read(count: int) -> bytes:
        nonlocal given
        given += count
        return data[given - count : given]

    next(sounds_from_pipe(read, 10.0))
    assert given < len(data) / 2


def test_speech_without_a_silence_is_cut() -> None:
    found = [sound for _, sound in sounds_from_pipe(io.BytesIO(stream(5.0)).read, 2.0)]
    assert abs(sum(sound.seconds for sound in found) - 5) < 0.01
    assert max(sound.seconds for sound in found) <= 2.06


def test_silence_alone_is_told() -> None:
    with pytest.raises(UserError, match=r"^standard input is silent$"):
        next(sounds_from_pipe(io.BytesIO(stream(-3.0)).read, 2.0))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"ends before its samples$"),
        (b"RIFF" + bytes(60), r"is not a .wav stream"),
        (stream()[:30], r"ends before its samples$"),
        (stream(), r"^standard input has no samples$"),
        (stream()[:16] + struct.pack("<I", 2**30) + bytes(90), r"a header has 1,073,741,824 bytes$"),
    ],
)
def test_streams_that_cannot_be_read(data: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        list(sounds_from_pipe(io.BytesIO(data).read, 2.0))
