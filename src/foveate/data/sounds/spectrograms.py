"""Log-mel spectrograms, their normalization and their augmentation."""

import functools
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor

from foveate.data.sounds.files import Waveform
from foveate.errors import UserError, at_least

FLOOR = 1e-10
"""The least power of a band."""

RANGE = 8.0
"""Powers of ten between the loudest place of a spectrogram and its floor."""


@dataclass(frozen=True)
class LogMel:
    """The logarithm of the power in bands that are evenly spaced on the mel scale, every few milliseconds.

    Windows, bands and floor are those of Whisper (Radford et al. 2023, https://arxiv.org/abs/2212.04356).
    """

    rate: int = 16_000
    """Sampling rate in Hz; sounds of other rates are resampled."""
    bands: int = 80
    """Number F of bands."""
    window: float = 0.025
    """Seconds of a window."""
    step: float = 0.010
    """Seconds from one window to the next."""

    def check(self) -> None:
        """Raise UserError for values that cannot be."""
        for name in ("rate", "bands"):
            at_least(1, name, getattr(self, name))
        if not 0 < self.step <= self.window <= 1 or self.step * self.rate < 1:
            raise UserError(f"a step of {self.step} s and windows of {self.window} s do not fit {self.rate:,} Hz")
        if (self.filters.sum(0) == 0).any():
            raise UserError(f"{self.bands} bands are too many for {self.rate:,} Hz: a band has no frequency")

    @property
    def filters(self) -> Float[Tensor, "W F"]:
        """The weight of each frequency of a window's spectrum in each band."""
        return _filters(self.rate, round(self.window * self.rate), self.bands)

    def __call__(self, sound: Waveform) -> Float32[np.ndarray, "S F"]:
        """The spectrogram: one frame for each step, none for a shorter sound's remainder."""
        samples = torch.from_numpy(sound.at(self.rate).samples)
        size, step = round(self.window * self.rate), round(self.step * self.rate)
        if len(samples) < size:
            samples = torch.nn.functional.pad(samples, (0, size - len(samples)))
        waves = torch.stft(samples, size, step, window=torch.hann_window(size), center=True, return_complex=True)
        power = waves[:, :-1].abs().square().T @ self.filters
        spectrogram = power.clamp(min=FLOOR).log10()
        return spectrogram.clamp(min=spectrogram.max() - RANGE).numpy()


@functools.cache
def _filters(rate: int, size: int, bands: int) -> Float[Tensor, "W F"]:
    """Triangles of equal area on Slaney's mel scale (Auditory Toolbox, 1998)."""
    frequencies = torch.linspace(0, rate / 2, size // 2 + 1, dtype=torch.float64)
    edges = _hertz(torch.linspace(0, _mel(rate / 2), bands + 2, dtype=torch.float64))
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    rising = (frequencies[:, None] - left) / (centre - left)
    falling = (right - frequencies[:, None]) / (right - centre)
    return (torch.minimum(rising, falling).clamp(min=0) * 2 / (right - left)).float()


_LINEAR_MELS, _HERTZ_PER_MEL, _LOG_STEP = 15.0, 200 / 3, np.log(6.4) / 27
"""Slaney's scale: linear up to 15 mels (1,000 Hz), then 27 mels for each factor of 6.4."""


def _mel(hertz: float) -> float:
    linear = hertz / _HERTZ_PER_MEL
    return float(linear if linear < _LINEAR_MELS else _LINEAR_MELS + np.log(hertz / 1000) / _LOG_STEP)


def _hertz(mels: Float[Tensor, "M"]) -> Float[Tensor, "M"]:
    return torch.where(
        mels < _LINEAR_MELS, mels * _HERTZ_PER_MEL, 1000 * ((mels - _LINEAR_MELS).clamp(min=0) * _LOG_STEP).exp()
    )


def normalize(spectrogram: Float32[np.ndarray, "S F"], each_band: bool) -> Float32[np.ndarray, "S F"]:
    """A spectrogram with a mean of 0 and a deviation of nearly 1, so that loudness does not matter.

    With `each_band` it is each band that has them, so that the microphone matters less; what tells voices apart is
    weaker then.
    """
    axis = 0 if each_band else None
    centred = spectrogram - spectrogram.mean(axis)
    return centred / (centred.std(axis) + 0.1)


@dataclass(frozen=True)
class SpecAugment:
    """Sets random bands and random stretches of time to the mean, 0 (Park et al. 2019,
    https://arxiv.org/abs/1904.08779), without time warping."""

    masks: int = 2
    """Number of masks of bands, and of time."""
    bands: float = 0.2
    """Greatest share of the bands that a mask covers."""
    frames: float = 0.1
    """Greatest share of the frames that a mask covers."""

    def __call__(
        self, spectrogram: Float32[np.ndarray, "S F"], generator: np.random.Generator
    ) -> Float32[np.ndarray, "S F"]:
        """A copy of a normalized spectrogram with masks drawn by `generator`."""
        masked = spectrogram.copy()
        frames, bands = spectrogram.shape
        for _ in range(self.masks):
            start, end = _stretch(bands, self.bands, generator)
            masked[:, start:end] = 0
            start, end = _stretch(frames, self.frames, generator)
            masked[start:end] = 0
        return masked


def _stretch(size: int, share: float, generator: np.random.Generator) -> tuple[int, int]:
    """A random range within `size` places that covers at most a share of them."""
    length = int(generator.integers(0, int(size * share) + 1))
    start = int(generator.integers(0, size - length + 1))
    return start, start + length
