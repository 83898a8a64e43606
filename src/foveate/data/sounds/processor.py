"""Labelled sounds become spectrograms of one size, which models read as images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float16, Float32
from torch import Tensor

from foveate.contracts import Batch, label_batch
from foveate.data.dataset import Dataset
from foveate.data.processor import Processor
from foveate.data.sounds.files import Sound
from foveate.data.sounds.labelled import LabelledSound
from foveate.data.sounds.spectrograms import LogMel, SpecAugment, normalize


class PreparedSound(NamedTuple):
    """A spectrogram and the number of its label."""

    spectrogram: Float16[np.ndarray, "S F"]
    label: int


@dataclass
class SoundProcessor(Processor[LabelledSound]):
    """Turns labelled sounds into inputs `pixels` (B, 1, F, S), S being `frames`, and labels (B, 1).

    Longer sounds are cropped, shorter ones padded by zeros: in the middle, in training at random. In training random
    bands and stretches of time are masked too.
    """

    log_mel: LogMel
    frames: int
    labels: dict[str, int]
    """How often each label occurs in training; the classes of the model in their order."""
    augment: bool = True

    def prepare(self, dataset: Dataset[LabelledSound]) -> list[PreparedSound]:
        numbers = {label: number for number, label in enumerate(self.labels)}
        return [PreparedSound(self.spectrogram(one.read()).astype(np.float16), numbers[one.label]) for one in dataset]

    def batch(self, prepared: Sequence[PreparedSound], generator: np.random.Generator | None) -> Batch:
        chosen = generator if self.augment else None
        pixels = self.pixels([one.spectrogram.astype(np.float32) for one in prepared], chosen)
        return label_batch({"pixels": pixels}, torch.tensor([[one.label] for one in prepared]), "sounds")

    def spectrogram(self, sound: Sound) -> Float32[np.ndarray, "S F"]:
        """The normalized spectrogram of a sound, of any length."""
        return normalize(self.log_mel(sound), each_band=False)

    def pixels(self, spectrograms: Sequence[np.ndarray], generator: np.random.Generator | None = None) -> Tensor:
        """Spectrograms (S, F) as a model reads them, (B, 1, F, S)."""
        fitted = np.stack([self.fit(one, generator) for one in spectrograms])
        return torch.from_numpy(fitted).mT.unsqueeze(1).contiguous()

    def fit(
        self, spectrogram: Float32[np.ndarray, "S F"], generator: np.random.Generator | None = None
    ) -> Float32[np.ndarray, "Z F"]:
        """A spectrogram cropped or padded to `frames`, and masked, where a generator is given."""
        if generator is not None:
            spectrogram = SpecAugment()(spectrogram, generator)
        free = abs(self.frames - len(spectrogram))
        start = free // 2 if generator is None else int(generator.integers(0, free + 1))
        if len(spectrogram) > self.frames:
            return spectrogram[start : start + self.frames]
        return np.pad(spectrogram, ((start, free - start), (0, 0)))

    def check(self) -> None:
        self.log_mel.check()

    def sizes(self) -> dict[str, int]:
        return {"classes": len(self.labels), "channels": 1, "bands": self.log_mel.bands, "frames": self.frames}
