"""Sounds that are read, as log-mel spectrograms.

    Sound         what both have in common
    SpokenSound   of any length, which a model reads frame by frame
    SoundClip     of one length, which a model reads as an image

B batch    S frames    F bands
"""

import hashlib
import math
from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from foveate.contracts import Picture
from foveate.data.dataset import Dataset, Prepared
from foveate.data.sounds.files import Waveform, decode_sound, read_sound
from foveate.data.sounds.filter_banks import FilterBanks
from foveate.data.sounds.spectrograms import LogMel, SpecAugment, normalize
from foveate.data.table import SOUND, Column
from foveate.errors import UserError
from foveate.forms.form import Changes, InputForm, Learned, MapRow, Naming
from foveate.forms.grids import GridFinder
from foveate.forms.inputs import require_file
from foveate.forms.sound_files import choose_log_mel, read_banks, sound_files
from foveate.viewer.figures import plot_image_attention
from foveate.viewer.protocol import Input, InputKind
from foveate.viewer.sides import Audio, Image

LARGEST = 4_000_000_000
"""Bytes of spectrograms that are kept in memory."""

MULTIPLE = 16
"""Spectrograms of one length have a multiple of this many frames, which patches and strides divide."""

LONGEST = 10.0
"""Seconds of spectrograms of one length, where sounds are longer and no length is given."""


@dataclass
class Sound(InputForm):
    """A sound as its spectrogram."""

    kind: ClassVar[InputKind] = "audio"
    name: ClassVar[str] = "sound"
    columns: ClassVar[tuple[Column, ...]] = (SOUND,)

    rate: int | None = None
    """Sampling rate that sounds are resampled to. By default that of the first sound, at most 16,000 Hz."""
    bands: int | None = None
    """Bands of the spectrogram. By default 40 up to 8,000 Hz, else 80."""
    log_mel: Learned[LogMel | None] = None
    """What makes the spectrograms."""

    def check_learned(self) -> None:
        self.mel.check()

    @property
    def mel(self) -> LogMel:
        """What makes the spectrograms, once it is learned."""
        if self.log_mel is None:
            raise UserError("the sampling rate and the bands of sounds are missing")
        return self.log_mel

    def learn(self, train: Dataset[Any], architecture: Any) -> "Sound":
        found = copy(self)
        found.log_mel = choose_log_mel(train[0].rate, self.rate, self.bands)
        return found

    def follow(self, trained: Any) -> "Sound":
        """With the spectrograms of the trained one, unless others are asked for."""
        found = copy(self)
        if self.rate is None and self.bands is None:
            found.log_mel = trained.log_mel
        return found

    def expand(self, given: Sequence[str]) -> list[str]:
        return sound_files(given)

    def open(self, given: str) -> Any:
        return read_sound(Path(given))

    def receive(self, given: Input, name: str) -> Any:
        file = require_file(given, name, "audio")
        return decode_sound(file.data, file.name)

    def group(self, example: Any) -> Hashable:
        return hashlib.blake2b(example.path.read_bytes(), digest_size=8).digest()

    def prefix(self, given: str) -> tuple[str, ...]:
        return (given,)


@dataclass(frozen=True)
class Heard:
    """A sound, and the form that makes its spectrogram when it is asked for."""

    sound: Waveform
    form: "SpokenSound"
    language: str | None = None
    """The code of the language that is spoken, where a model found it."""

    @property
    def seconds(self) -> float:
        return self.sound.seconds

    @property
    def spectrogram(self) -> Float32[np.ndarray, "S F"]:
        """What the model reads."""
        return self.form.spectrogram(self.sound)

    @property
    def shown(self) -> Float32[np.ndarray, "S F"]:
        """The part of it that is sound, for pictures."""
        return self.spectrogram[: math.ceil(self.seconds * self.form.frames)]


@dataclass
class SpokenSound(Sound):
    """A sound in which something is said: inputs `source` (B, S, F) and `source_lengths` (B,)."""

    most_seconds: ClassVar[float] = math.inf
    """Seconds of the longest sound that a model can read."""

    augment: bool = True
    """Mask bands and stretches of time in training, at random (SpecAugment)."""
    longest: Learned[float] = 0.0
    """Seconds of the longest sound in training."""

    def check_learned(self) -> None:
        super().check_learned()
        if self.longest <= 0:
            raise UserError(f"the longest sound lasts {self.longest} s, but must last longer than 0")

    def learn(self, train: Dataset[Any], architecture: Any) -> "SpokenSound":
        found: Any = super().learn(train, architecture)
        found.longest = max(one.seconds for one in train)
        return found

    def extend(self, trained: "SpokenSound", train: Dataset[Any]) -> "SpokenSound":
        """With the spectrograms of the trained one, unless others are asked for."""
        found: Any = self.learn(train, None).follow(trained)
        found.longest = max(found.longest, trained.longest)
        return found

    def sizes(self) -> dict[str, int]:
        return {"bands": self.mel.bands}

    @property
    def frames(self) -> float:
        """Those of a second."""
        return 1 / self.mel.step

    def spectrogram(self, sound: Waveform) -> Float32[np.ndarray, "S F"]:
        """The normalized spectrogram of a sound."""
        return normalize(self.mel(sound), each_band=True)

    def open(self, given: str) -> Heard:
        return Heard(super().open(given), self)

    def receive(self, given: Input, name: str) -> Heard:
        """Raises UserError for a sound that is longer than any in training too: only parts of it would be read."""
        sound = super().receive(given, name)
        if sound.seconds > self.longest:
            raise UserError(
                f"{self.title(given)} lasts {sound.seconds:,.1f} seconds, but the longest sound that {name} learned "
                f"from {self.longest:,.1f}: cut it"
            )
        return Heard(sound, self)

    def value(self, example: Any) -> Heard:
        return Heard(example.read(), self)

    def prepare_all(self, dataset: Dataset[Any]) -> Prepared:
        """Spectrograms in half precision. Raises UserError where they do not fit into memory."""
        self.check_memory(dataset, self.mel.bands)
        return Prepared([self.spectrogram(one.read()).astype(np.float16) for one in dataset], range(len(dataset)))

    def check_memory(self, dataset: Dataset[Any], bands: int) -> None:
        """Raise UserError where spectrograms of so many bands do not fit into memory."""
        size = sum(example.seconds for example in dataset) * self.frames * bands * 2
        if size > LARGEST:
            raise UserError(
                f"{dataset.name}: the spectrograms take {size / 1e9:.0f} GB, more than {LARGEST / 1e9:.0f}: "
                "lower --bands, or leave sounds out"
            )

    def cost(self, prepared: np.ndarray) -> int:
        """Frames."""
        return len(prepared)

    def places(self, prepared: Heard) -> int:
        """A quarter of the frames, as most models keep."""
        return math.ceil(prepared.seconds * self.frames / 4)

    def tensors(
        self, prepared: Sequence[Heard | np.ndarray], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        spectrograms = [one.spectrogram if isinstance(one, Heard) else one.astype(np.float32) for one in prepared]
        if generator is not None and self.augment:
            spectrograms = [self.masked(one, generator) for one in spectrograms]
        lengths = [len(one) for one in spectrograms]
        source = torch.zeros(len(spectrograms), max(lengths), spectrograms[0].shape[1])
        for row, one in enumerate(spectrograms):
            source[row, : len(one)] = torch.from_numpy(one)
        return {"source": source, "source_lengths": torch.tensor(lengths)}, Changes()

    def masked(
        self, spectrogram: Float32[np.ndarray, "S F"], generator: np.random.Generator
    ) -> Float32[np.ndarray, "S F"]:
        """A spectrogram with random bands and stretches of time set to its mean."""
        return SpecAugment()(spectrogram, generator)

    def axis(self, value: Heard, prepared: Heard, grid: GridFinder) -> Naming:
        """The time of the sound, under its spectrogram."""
        names = Audio.of(value.spectrogram.T, value.seconds)
        return lambda count: names


@dataclass
class SoundClip(Sound):
    """A sound of one length: inputs `pixels` (B, 1, F, S).

    Longer sounds are cropped, shorter ones padded by zeros: in the middle, in training at random. Of public models it
    is their end.
    """

    seconds: float | None = None
    """Length that sounds are cropped or padded to. By default that of the longest but one in twenty, at most 10."""
    augment: bool = True
    """Shift sounds and mask bands and stretches of time in training, at random."""
    frames: Learned[int] = 0
    """Frames of that length."""
    banks: Learned[FilterBanks | None] = None
    """What makes the spectrograms of public models instead, whose sounds begin with the first frame."""

    @classmethod
    def of_folder(cls, folder: Path, config: Any) -> "SoundClip":
        """As a folder says, whose model has this config. Raises UserError for what foveate does not do."""
        return cls(frames=config.frames, banks=read_banks(folder, config))

    def check_learned(self) -> None:
        if self.banks is None:
            super().check_learned()

    def extend(self, trained: Any, train: Dataset[Any]) -> "SoundClip":
        """With the spectrograms of the trained one."""
        for name in ("rate", "bands", "seconds") if trained.banks is not None else ():
            if getattr(self, name) is not None:
                raise UserError(f"reads.{name} is what the trained model has: leave it out")
        found: SoundClip = super().extend(trained, train)
        return found

    def follow(self, trained: Any) -> "SoundClip":
        """With the length of the trained one too."""
        found: Any = super().follow(trained)
        found.banks, found.frames = trained.banks, self.frames if self.seconds is not None else trained.frames
        return found

    def check(self) -> None:
        check_seconds(self.seconds)

    def learn(self, train: Dataset[Any], architecture: Any) -> "SoundClip":
        found: Any = super().learn(train, architecture)
        usual = min(LONGEST, float(np.quantile([one.seconds for one in train], 0.95)))
        seconds = usual if self.seconds is None else self.seconds
        found.frames = MULTIPLE * max(1, round(seconds / found.mel.step / MULTIPLE))
        return found

    def sizes(self) -> dict[str, int]:
        return {"channels": 1, "bands": (self.banks or self.mel).bands, "frames": self.frames}

    def prepare(self, value: Waveform) -> Float32[np.ndarray, "S F"]:
        """The normalized spectrogram, of any length."""
        return normalize(self.mel(value), each_band=False) if self.banks is None else self.banks(value)

    def prepare_all(self, dataset: Dataset[Any]) -> Prepared:
        """In half precision, which takes half of the memory."""
        return Prepared([self.prepare(one.read()).astype(np.float16) for one in dataset], range(len(dataset)))

    def places(self, prepared: np.ndarray) -> int:
        return self.frames // 4

    def tensors(
        self, prepared: Sequence[np.ndarray], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        chosen = generator if self.augment else None
        fitted = np.stack([self._fit(one.astype(np.float32), chosen) for one in prepared])
        return {"pixels": torch.from_numpy(fitted).mT.unsqueeze(1).contiguous()}, Changes()

    def _fit(
        self, spectrogram: Float32[np.ndarray, "S F"], generator: np.random.Generator | None
    ) -> Float32[np.ndarray, "Z F"]:
        """A spectrogram cropped or padded to `frames`, and masked, where a generator is given."""
        if generator is not None:
            spectrogram = SpecAugment()(spectrogram, generator)
        free = abs(self.frames - len(spectrogram))
        usual, silence = (free // 2, 0.0) if self.banks is None else (0, self.banks.silence)
        start = usual if generator is None else int(generator.integers(0, free + 1))
        if len(spectrogram) > self.frames:
            return spectrogram[start : start + self.frames]
        return np.pad(spectrogram, ((start, free - start), (0, 0)), constant_values=silence)

    def _spectrum(self, prepared: np.ndarray) -> np.ndarray:
        """The spectrogram as a grey picture, low frequencies at the bottom."""
        bands = self._fit(prepared.astype(np.float32), None).T[::-1]
        return (255 * (bands - bands.min()) / (np.ptp(bands) + 1e-6)).astype(np.uint8)

    def before(self, places: int, grid: GridFinder) -> int:
        return grid(places)[2]

    def axis(self, value: Waveform, prepared: np.ndarray, grid: GridFinder) -> Naming:
        """A picture of the spectrogram, the lowest band at the top: the order in which the model reads its patches."""
        picture = self._spectrum(prepared)[::-1]

        def names(count: int) -> Image | None:
            down, across, before = grid(count)
            return Image.of(picture, down, across, ["[CLASS]", "[DISTILL]"][:before]) if down > 1 else None

        return names

    def draw(self, value: Waveform, rows: Sequence[MapRow], title: str, grid: GridFinder) -> Picture | None:
        """The spectrogram beside where it was looked at."""
        if not rows:
            return None
        down, across, before = grid(len(rows[0].weights))
        weights = rows[0].weights[before:].reshape(down, across)
        return plot_image_attention(self._spectrum(self.prepare(value))[..., None], np.asarray(weights)[::-1], title)


def check_seconds(seconds: float | None) -> None:
    """Raise UserError for a length that no sound can be cut to."""
    if seconds is not None and not 0 < seconds <= 600:
        raise UserError(f"seconds is {seconds}, but must be above 0 and at most 600")
