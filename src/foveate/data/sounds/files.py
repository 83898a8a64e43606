"""Sounds: reads files, mixes channels and changes the sampling rate.

WAV files are read by `foveate.data.sounds.wav`; ogg, flac and mp3 need the extra "audio".
"""

import io
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from foveate.data.sounds.wav import check_length, decode_wav, is_wav
from foveate.errors import UserError
from foveate.limits import check_file

ENDINGS = (".wav", ".flac", ".ogg", ".oga", ".mp3")
"""Extensions of sound files."""

LONGEST = 600
"""Seconds of the longest sound that is read."""

MOST_SAMPLES = 30_000_000
"""Samples of a channel of the longest sound: ten minutes at 48 kHz, and some more."""

HIGHEST_RATE = 1_000_000
"""Samples of a second that a file may claim. Microphones have at most a fifth of it."""

LONG = 2**20
"""Samples from which on a sound is padded before its rate is changed, so that it takes little memory."""

AT_ONCE = 2**16
"""Samples of each channel that are decoded at once: a compressed file may have hours of many channels."""

LARGEST = 512 * 2**20
"""Bytes of the largest file that is read."""

SILENCE = 1e-4
"""A sound whose samples all differ by less is silence. It is three steps of 16-bit samples."""


@dataclass(frozen=True)
class Waveform:
    """A sound with one channel."""

    samples: Float32[np.ndarray, "N"]
    """Samples from -1 to 1."""
    rate: int
    """Samples of a second."""

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate

    @property
    def is_silent(self) -> bool:
        """Whether there is nothing to hear in it."""
        return not len(self.samples) or float(np.ptp(self.samples)) < SILENCE

    def at(self, rate: int) -> "Waveform":
        """The sound at another sampling rate."""
        return self if rate == self.rate else Waveform(resample(self.samples, self.rate, rate), rate)


def read_sound(path: Path) -> Waveform:
    """The sound in a file. Raises UserError, which names the file, if there is none that can be used."""
    try:
        check_file(path, LARGEST)
        data = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no file {path}") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    return decode_sound(data, str(path))


def decode_sound(data: bytes, name: str) -> Waveform:
    """The sound in the content of a file; `name` stands for it in messages. Channels are averaged.

    Raises UserError for a damaged file, unknown formats, no samples, samples that are not finite, silence, and sounds
    longer than `LONGEST` seconds.
    """
    channels, rate = decode_wav(data, name, LONGEST) if is_wav(data) else _decode_by_soundfile(data, name)
    if not len(channels):
        raise UserError(f"{name} has no samples")
    if rate > HIGHEST_RATE:
        raise UserError(f"{name} claims {rate:,} samples a second; the limit is {HIGHEST_RATE:,}")
    if len(channels) > MOST_SAMPLES:
        raise UserError(f"{name} has more than {MOST_SAMPLES:,} samples: cut it, or convert it to a lower rate")
    samples = channels.mean(1)
    if not np.isfinite(samples).all():
        raise UserError(f"{name} has samples that are not numbers (NaN or infinite)")
    if (sound := Waveform(samples, rate)).is_silent:
        raise UserError(f"{name} is silent")
    return sound


def _decode_by_soundfile(data: bytes, name: str) -> tuple[Float32[np.ndarray, "N 1"], int]:
    """The mean of the channels; of a sound that is too long, the beginning."""
    try:
        import soundfile
    except (ImportError, OSError):  # OSError without the library that it is made of
        raise UserError(
            f"{name} is not a .wav file; other formats (ogg, flac, mp3) need the extra: pip install 'foveate[audio]'"
        ) from None
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            rate = file.samplerate
            check_length(file.frames, rate, LONGEST, name)
            count, parts = 0, [np.zeros(0, np.float32)]
            while count <= MOST_SAMPLES and len(part := file.read(AT_ONCE, dtype="float32", always_2d=True)):
                parts.append(part.mean(1))
                count += len(part)
            return np.concatenate(parts)[:, None], rate
    except UserError:
        raise
    except (RuntimeError, ValueError, TypeError) as error:  # its own error is a RuntimeError
        reason = " ".join(str(getattr(error, "error_string", error)).split())
        raise UserError(f"{name} cannot be read as a sound: {reason}") from None


def resample(samples: Float32[np.ndarray, "N"], rate: int, wanted: int) -> Float32[np.ndarray, "M"]:
    """Samples at another sampling rate, without the frequencies that are too high for it."""
    if rate == wanted:
        return samples
    count = max(1, round(len(samples) * wanted / rate))
    if len(samples) > LONG:
        return _resample_padded(samples, Fraction(wanted, rate).limit_denominator(1000))[:count]
    return _resample(samples, count)


def _resample_padded(samples: Float32[np.ndarray, "N"], ratio: Fraction) -> Float32[np.ndarray, "M"]:
    """With silence at the end, so that both lengths have small factors: of a large prime, a Fourier transform takes
    many times the memory."""
    parts = _smooth(-(-len(samples) // ratio.denominator))
    padded = np.zeros(parts * ratio.denominator, np.float32)
    padded[: len(samples)] = samples
    return _resample(padded, parts * ratio.numerator)


def _smooth(least: int) -> int:
    """The first number from `least` on whose prime factors are 2, 3 and 5."""
    odd = (3**three * 5**five for three in range(20) for five in range(14))
    return min(part << (-(-least // part) - 1).bit_length() for part in odd)


def _resample(samples: Float32[np.ndarray, "N"], count: int) -> Float32[np.ndarray, "M"]:
    waves = np.fft.rfft(samples)
    kept = np.zeros(count // 2 + 1, waves.dtype)
    common = min(len(kept), len(waves))
    kept[:common] = waves[:common]
    return (np.fft.irfft(kept, count) * (count / len(samples))).astype(np.float32)
