"""Sound that comes from a pipe: cut at silences, each part as soon as it is there."""

from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float32

from foveate.data.sounds.cutting import cut_at_silences
from foveate.data.sounds.files import SILENCE, Waveform
from foveate.data.sounds.wav import PCM, WaveFormat, decode_samples, read_format
from foveate.errors import UserError

PAUSE = 0.5
"""Seconds of a silence that ends a part."""

AROUND = 0.1
"""Seconds of silence that are kept before and after a part, at most."""

QUIET = 0.05
"""A stretch is quiet if its loudness is below this share of the part's loudest stretch."""

STRETCH = 0.05
"""Seconds of the stretches whose loudness is compared."""

Read = Callable[[int], bytes]
"""Reads this many bytes, or fewer at the end of the stream."""


def sounds_from_pipe(read: Read, longest: float, raw: int | None = None) -> Iterator[tuple[float, Waveform]]:
    """The parts of a stream, with the second at which each begins, between silences.

    None lasts more than `longest` seconds. The stream is a WAV; with `raw`, this is the sampling rate of bare 16-bit
    samples of one channel, without a header. Silent parts are left out. Raises UserError for a stream that is no WAV,
    for one without samples, and in the end for one that was silent throughout.
    """
    name = "standard input"
    header = read_format(read, name) if raw is None else WaveFormat(PCM, 1, raw, 16)
    size = max(1, round(STRETCH * header.rate))
    waiting, quiet, start, empty, silent = np.zeros(0, np.float32), 0, 0, True, True
    while piece := _read_all(read, size * header.frame_size):
        samples = _mono(piece, header, name)
        empty = empty and not len(samples)
        waiting = np.concatenate([waiting, samples])
        loud = max((float(np.abs(part).max()) for part in _stretches(waiting, size)), default=0.0)
        is_quiet = not len(samples) or float(np.abs(samples).max()) < max(SILENCE, QUIET * loud)
        quiet = quiet + 1 if is_quiet else 0
        spoken = len(waiting) - quiet * size > 0 and loud > SILENCE
        silent = silent and not spoken
        if spoken and quiet * STRETCH >= PAUSE:
            end = len(waiting) - quiet * size + round(AROUND * header.rate)
            yield start / header.rate, Waveform(waiting[:end], header.rate)
            start, waiting, quiet = start + len(waiting), waiting[:0], 0
        elif len(waiting) > longest * header.rate:
            first, *rest = cut_at_silences(Waveform(waiting, header.rate), longest)
            waiting = np.concatenate([one.samples for one in rest])
            if not first.is_silent:
                yield start / header.rate, first
            start += len(first.samples)
        elif not spoken:
            kept = waiting[-round(AROUND * header.rate) :]  # longer silence before speech is not kept
            start, waiting = start + len(waiting) - len(kept), kept
    if empty:
        raise UserError(f"{name} has no samples")
    if not (last := Waveform(waiting, header.rate)).is_silent:
        yield start / header.rate, last
    elif silent:
        raise UserError(f"{name} is silent")


def _read_all(read: Read, count: int) -> bytes:
    """This many bytes, or fewer at the end; a pipe may give them in several pieces."""
    found = b""
    while len(found) < count and (more := read(count - len(found))):
        found += more
    return found


def _mono(piece: bytes, header: WaveFormat, name: str) -> Float32[np.ndarray, "N"]:
    if len(piece) < header.frame_size:
        return np.zeros(0, np.float32)
    samples = decode_samples(memoryview(piece), header, name).mean(1)
    if not np.isfinite(samples).all():
        raise UserError(f"{name} has samples that are not numbers (NaN or infinite)")
    return samples


def _stretches(samples: Float32[np.ndarray, "N"], size: int) -> Iterator[Float32[np.ndarray, "M"]]:
    for begin in range(0, len(samples), size):
        yield samples[begin : begin + size]
