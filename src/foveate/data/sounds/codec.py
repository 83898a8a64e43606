"""Sounds as tokens: each frame of a log-mel spectrogram is one of a few hundred codes, and codes become sound again.

K  codes    F  bands    T  frames
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float32, Int

from foveate.data.codebook import check_codes, learn_codebook, quantize
from foveate.data.sounds.files import Waveform
from foveate.data.sounds.spectrograms import LogMel

QUIETEST = -6.0
"""Powers of ten below the loudest place of a sound that are kept; what is quieter counts as this."""

ROUNDS = 60
"""Rounds in which the phases of a sound are estimated."""

PEAK = 0.7
"""The largest sample of a sound that is made."""


@dataclass
class AudioCodec:
    """How a sound becomes tokens and back. Loudness is lost: the loudest place of each sound is the same."""

    log_mel: LogMel
    codes: tuple[tuple[float, ...], ...]
    """The codebook (K, F)."""

    def check(self) -> None:
        """Raise UserError for values that cannot be."""
        self.log_mel.check()
        check_codes(self.codes, self.log_mel.bands)

    @cached_property
    def _codebook(self) -> Float32[np.ndarray, "K F"]:
        return np.array(self.codes, np.float32)

    def encode(self, sound: Waveform) -> Int[np.ndarray, "T"]:
        """The code of each frame."""
        return quantize(relative(self.log_mel, sound), self._codebook)

    def decode(self, tokens: Sequence[int], seed: int = 1) -> Waveform:
        """The sound of codes. Phases are estimated from a random beginning."""
        return invert(self.log_mel, self._codebook[list(tokens)], seed)


def learn_codec(log_mel: LogMel, sounds: Sequence[Waveform], codes: int) -> AudioCodec:
    """The codec of sounds: its codes are learned by k-means from their frames."""
    frames = np.concatenate([relative(log_mel, sound) for sound in sounds])
    rows = learn_codebook(frames, codes)
    return AudioCodec(log_mel, tuple(tuple(round(float(x), 3) for x in row) for row in rows))


def relative(log_mel: LogMel, sound: Waveform) -> Float32[np.ndarray, "T F"]:
    """A log-mel spectrogram whose loudest place is 0."""
    found = log_mel(sound)
    return np.maximum(found - found.max(), QUIETEST)


def invert(log_mel: LogMel, spectrogram: Float32[np.ndarray, "T F"], seed: int = 1) -> Waveform:
    """A sound with nearly this log-mel spectrogram.

    Bands become frequencies by the pseudo-inverse of the filters. Phases are those of a sound that has such a
    spectrogram, found by turns in time and in frequency, with momentum (Griffin and Lim 1984; Perraudin et al. 2013).
    """
    size, step = round(log_mel.window * log_mel.rate), round(log_mel.step * log_mel.rate)
    short = max(0, size // step + 1 - len(spectrogram))  # too few frames for one window
    spectrogram = np.pad(spectrogram, ((0, short), (0, 0)), constant_values=QUIETEST)
    power = torch.from_numpy(10.0**spectrogram) @ torch.linalg.pinv(log_mel.filters)
    magnitude = power.clamp(min=0).sqrt().T
    magnitude = torch.cat([magnitude, magnitude[:, -1:]], 1)
    window = torch.hann_window(size)
    generator = torch.Generator().manual_seed(seed)
    waves = torch.polar(magnitude, 2 * torch.pi * torch.rand(magnitude.shape, generator=generator))
    before = torch.zeros_like(waves)
    for _ in range(ROUNDS):
        samples = torch.istft(waves, size, step, window=window, center=True)
        again = torch.stft(samples, size, step, window=window, center=True, return_complex=True)
        again = again[:, : magnitude.shape[1]]
        waves = torch.polar(magnitude, torch.angle(again + 0.99 * (again - before)))
        before = again
    samples = torch.istft(waves, size, step, window=window, center=True)
    return Waveform((samples * (PEAK / samples.abs().max().clamp(min=1e-9))).numpy(), log_mel.rate)
