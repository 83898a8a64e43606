"""The spectrograms that Whisper reads."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from foveate.data.sounds.files import Waveform
from foveate.data.sounds.spectrograms import LogMel

RATE = 16_000
"""Sampling rate in Hz."""

SECONDS = 30
"""Length of a window; shorter sounds are padded with silence."""


@dataclass(frozen=True)
class WhisperFeatures:
    """Log-mel spectrograms of windows of 30 seconds, between about -1 and 1 (Radford et al. 2023, section 2.2)."""

    bands: int = 80

    def __call__(self, sound: Waveform) -> Float32[np.ndarray, "S F"]:
        """The spectrogram of a sound of at most 30 seconds. Raises ValueError for a longer one."""
        samples = sound.at(RATE).samples
        most = SECONDS * RATE
        if len(samples) > most:
            raise ValueError(f"{len(samples):,} samples are more than the {most:,} of a window")
        window = np.pad(samples, (0, most - len(samples)))
        return (LogMel(RATE, self.bands)(Waveform(window, RATE)) + 4) / 4
