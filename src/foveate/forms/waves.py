"""Sounds that a model reads as samples, such as wav2vec 2.0.

    SpokenWaves   in which something is said
    WavesClip     that get a label

B batch    S samples of the longest sound    F bands of a picture
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from foveate.contracts import Picture
from foveate.data.dataset import Dataset, Prepared
from foveate.data.sounds.files import Waveform
from foveate.data.sounds.spectrograms import LogMel, normalize
from foveate.errors import UserError
from foveate.forms.form import Changes, Learned, MapRow, Naming
from foveate.forms.grids import GridFinder
from foveate.forms.sound import LARGEST, Heard, Sound, SpokenSound, check_seconds
from foveate.forms.sound_files import read_sound_settings
from foveate.viewer.figures import plot_image_attention
from foveate.viewer.sides import Audio

RATE = 16_000
"""Samples of a second that public models read."""

SHORTEST = 800
"""Samples that shorter sounds are padded to: a place of all public models is less."""

FRAMES, PLACES = 100, 50
"""Frames of a second in pictures and in the budget of a batch, and places that a model keeps."""

LONGEST = 30.0
"""Seconds of sounds that are not cut, where nobody knows how long those of the training were."""


@dataclass
class Waves:
    """What both have in common."""

    samples: Learned[int] = RATE
    """Samples of a second that the model reads."""
    standard: Learned[bool] = True
    """Each sound has a mean of 0 and a deviation of 1."""

    def samples_of(self, sound: Waveform) -> Float32[np.ndarray, "S"]:
        """What the model reads of a sound."""
        found = sound.at(self.samples).samples.astype(np.float32)
        if self.standard:
            found = (found - found.mean()) / np.sqrt(found.var() + 1e-7)
        return np.pad(found, (0, max(0, SHORTEST - len(found))))

    def picture_of(self, sound: Waveform) -> Float32[np.ndarray, "S F"]:
        """A spectrogram to be drawn."""
        return normalize(LogMel(self.samples, 80)(sound), each_band=True)

    def prepare_waves(self, dataset: Dataset[Any]) -> Prepared:
        """The samples of all sounds. Raises UserError where they do not fit into memory."""
        size = sum(example.seconds for example in dataset) * self.samples * 4
        if size > LARGEST:
            raise UserError(
                f"{dataset.name}: the samples take {size / 1e9:.0f} GB, more than {LARGEST / 1e9:.0f}: leave sounds out"
            )
        return Prepared([self.samples_of(one.read()) for one in dataset], range(len(dataset)))

    def inputs(self, rows: Sequence[np.ndarray]) -> dict[str, Tensor]:
        """Sounds padded to the longest, with their lengths."""
        source = torch.zeros(len(rows), max(map(len, rows)))
        for row, one in enumerate(rows):
            source[row, : len(one)] = torch.from_numpy(np.ascontiguousarray(one))
        return {"source": source, "source_lengths": torch.tensor([len(one) for one in rows])}


def settings_of(folder: Path) -> dict[str, Any]:
    """What a public folder says of sounds. Raises UserError for what foveate does not do."""
    read = read_sound_settings(folder)
    read.require(feature_size=1, padding_value=0.0)
    return {"samples": read.get("sampling_rate", RATE), "standard": read.get("do_normalize", True)}


def check_no_bands(form: Any) -> None:
    """Raise UserError for settings of spectrograms, which such a model does not read."""
    for name in ("rate", "bands"):
        if getattr(form, name) is not None:
            raise UserError(f"reads.{name} does nothing here: the model reads samples at its own rate")
    if not form.augment:
        raise UserError("reads.augment does nothing here: give --architecture.mask-share 0")


@dataclass
class SpokenWaves(Waves, SpokenSound):
    """A sound in which something is said: inputs `source` (B, S) and `source_lengths` (B,)."""

    longest: Learned[float] = LONGEST

    @classmethod
    def of_folder(cls, folder: Path) -> "SpokenWaves":
        """As a folder says. Raises UserError for what foveate does not do."""
        return cls(**settings_of(folder))

    def check(self) -> None:
        check_no_bands(self)

    def check_learned(self) -> None:
        if self.longest <= 0:
            raise UserError(f"the longest sound lasts {self.longest} s, but must last longer than 0")

    def learn(self, train: Dataset[Any], architecture: Any) -> "SpokenWaves":
        found = copy(self)
        found.longest = max(one.seconds for one in train)
        return found

    def extend(self, trained: Any, train: Dataset[Any]) -> "SpokenWaves":
        found: SpokenWaves = trained.with_settings(self)
        found.longest = max(trained.longest, *(one.seconds for one in train))
        return found

    def sizes(self) -> dict[str, int]:
        return {}

    @property
    def frames(self) -> float:
        return FRAMES

    def spectrogram(self, sound: Waveform) -> Float32[np.ndarray, "S F"]:
        """For pictures."""
        return self.picture_of(sound)

    def prepare_all(self, dataset: Dataset[Any]) -> Prepared:
        return self.prepare_waves(dataset)

    def cost(self, prepared: np.ndarray) -> int:
        """Frames, as of a spectrogram."""
        return -(-len(prepared) * FRAMES // self.samples)

    def places(self, prepared: Heard) -> int:
        return round(prepared.seconds * PLACES)

    def tensors(
        self, prepared: Sequence[Heard | np.ndarray], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        rows = [self.samples_of(one.sound) if isinstance(one, Heard) else one for one in prepared]
        return self.inputs(rows), Changes()


@dataclass
class WavesClip(Waves, Sound):
    """A sound that gets a label: inputs `source` (B, S) and `source_lengths` (B,)."""

    seconds: float | None = None
    """Longer sounds are cut off here, if given."""
    augment: bool = True
    """What spectrograms alone have."""

    @classmethod
    def of_folder(cls, folder: Path) -> "WavesClip":
        """As a folder says. Raises UserError for what foveate does not do."""
        return cls(**settings_of(folder))

    def check(self) -> None:
        check_seconds(self.seconds)
        check_no_bands(self)

    def check_learned(self) -> None:
        """There is nothing that cannot be."""

    def learn(self, train: Dataset[Any], architecture: Any) -> "WavesClip":
        return copy(self)

    def sizes(self) -> dict[str, int]:
        return {}

    def prepare(self, value: Waveform) -> Float32[np.ndarray, "S"]:
        samples = self.samples_of(value)
        return samples if self.seconds is None else samples[: max(SHORTEST, round(self.seconds * self.samples))]

    def prepare_all(self, dataset: Dataset[Any]) -> Prepared:
        waves = self.prepare_waves(dataset)
        most = None if self.seconds is None else max(SHORTEST, round(self.seconds * self.samples))
        return Prepared([one[:most] for one in waves], range(len(dataset)))

    def places(self, prepared: np.ndarray) -> int:
        return round(len(prepared) * PLACES / self.samples)

    def tensors(
        self, prepared: Sequence[np.ndarray], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        return self.inputs(prepared), Changes()

    def axis(self, value: Waveform, prepared: np.ndarray, grid: GridFinder) -> Naming:
        """The time of the sound, under its spectrogram."""
        names = Audio.of(self.picture_of(value).T, value.seconds)
        return lambda count: names

    def before(self, places: int, grid: GridFinder) -> int:
        return 0

    def draw(self, value: Waveform, rows: Sequence[MapRow], title: str, grid: GridFinder) -> Picture | None:
        """The spectrogram beside where it was looked at."""
        if not rows:
            return None
        bands = self.picture_of(value).T[::-1]
        picture = (255 * (bands - bands.min()) / (np.ptp(bands) + 1e-6)).astype(np.uint8)
        return plot_image_attention(picture[..., None], np.asarray(rows[0].weights)[None], title)
