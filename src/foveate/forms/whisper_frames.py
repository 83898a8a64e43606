"""Sounds of at most 30 seconds as the spectrograms of Whisper, each as long as it is: for models that listen with its
encoder.

B batch    S frames of the longest sound    F bands
"""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float32
from torch import Tensor

from foveate.data.dataset import Dataset
from foveate.data.sounds.files import Waveform
from foveate.data.sounds.whisper_features import SECONDS
from foveate.errors import UserError
from foveate.forms.form import Changes, Learned, Naming
from foveate.forms.grids import GridFinder
from foveate.forms.sound import Heard, SpokenSound
from foveate.forms.whisper import FRAMES, WhisperSound
from foveate.viewer.protocol import Input


@dataclass
class WhisperFrames(WhisperSound):
    """A sound without the silence that a Whisper reads behind it: inputs `source` (B, S, F) and `source_lengths`
    (B,)."""

    longest: Learned[float] = 0.0
    """Seconds of the longest sound in training."""

    def check_learned(self) -> None:
        if not 0 < self.longest <= SECONDS:
            raise UserError(
                f"the longest sound lasts {self.longest} s, but must last more than 0, and {SECONDS} at most"
            )

    def learn(self, train: Dataset[Any], architecture: Any) -> "WhisperFrames":
        return self._longest_of(train, copy(self))

    def extend(self, trained: Any, train: Dataset[Any]) -> "WhisperFrames":
        return self._longest_of(train, trained.with_settings(self))

    @staticmethod
    def _longest_of(train: Dataset[Any], form: "WhisperFrames") -> "WhisperFrames":
        form.longest = max(form.longest, min(SECONDS, max(one.seconds for one in train)))
        return form

    def spectrogram(self, sound: Waveform) -> Float32[np.ndarray, "S F"]:
        """That of the sound alone."""
        return super().spectrogram(sound)[: max(1, math.ceil(sound.seconds * FRAMES))]

    def audible(self, sound: Waveform) -> Float32[np.ndarray, "S F"]:
        return self.spectrogram(sound)

    def cost(self, prepared: np.ndarray) -> int:
        """Frames of the sound."""
        return len(prepared)

    def places(self, prepared: Heard) -> int:
        """Half of the frames."""
        return math.ceil(prepared.seconds * FRAMES / 2)

    def tensors(
        self, prepared: Sequence[Heard | np.ndarray], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        return SpokenSound.tensors(self, prepared, generator)

    def receive(self, given: Input, name: str) -> Heard:
        return SpokenSound.receive(self, given, name)

    def axis(self, value: Heard, prepared: Heard, grid: GridFinder) -> Naming:
        return SpokenSound.axis(self, value, prepared, grid)
