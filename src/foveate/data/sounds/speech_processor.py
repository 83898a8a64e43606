"""Sounds and their transcripts become tensors: normalized log-mel spectrograms and characters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

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
from foveate.data.tokens.character_tokens import SPECIAL, decode, encode, teacher_forcing
from foveate.errors import UserError
from foveate.special_tokens import LEARNED, SpecialTokens

LARGEST = 4_000_000_000
"""Bytes of spectrograms that are kept in memory."""


class PreparedSpeech(NamedTuple):
    """A spectrogram and the tokens of its transcript."""

    spectrogram: Float16[np.ndarray, "S F"]
    tokens: list[int]


@dataclass
class SpeechProcessor(Processor[LabelledSound]):
    """Turns sounds into inputs `source` (B, S, F), `source_lengths` (B) and `target` (B, T), and labels (B, T).

    In training random bands and stretches of time are masked.
    """

    log_mel: LogMel
    special: ClassVar[SpecialTokens] = LEARNED

    characters: str
    """The characters that the model can write; token ids are their places, after the special ones."""
    longest: float
    """Seconds of the longest sound in training."""
    frequent: str
    """The most frequent transcript in training."""
    augment: bool = True

    def prepare(self, dataset: Dataset[LabelledSound]) -> list[PreparedSpeech]:
        size = sum(example.seconds for example in dataset) / self.log_mel.step * self.log_mel.bands * 2
        if size > LARGEST:
            raise UserError(
                f"{dataset.name}: the spectrograms take {size / 1e9:.0f} GB, more than {LARGEST / 1e9:.0f}: "
                "lower --bands, or leave sounds out"
            )
        return [
            PreparedSpeech(self.spectrogram(one.read()).astype(np.float16), encode(one.label, self.characters))
            for one in dataset
        ]

    def cost(self, prepared: PreparedSpeech) -> int:
        """Frames."""
        return len(prepared.spectrogram)

    def batch(self, prepared: Sequence[PreparedSpeech], generator: np.random.Generator | None) -> Batch:
        spectrograms = [one.spectrogram.astype(np.float32) for one in prepared]
        if generator is not None and self.augment:
            mask = SpecAugment()
            spectrograms = [mask(one, generator) for one in spectrograms]
        target, labels = teacher_forcing([one.tokens for one in prepared])
        return label_batch({**self.inputs(spectrograms), "target": target}, labels, "sounds")

    def spectrogram(self, sound: Sound) -> Float32[np.ndarray, "S F"]:
        """The normalized spectrogram of a sound."""
        return normalize(self.log_mel(sound), each_band=True)

    def inputs(self, spectrograms: Sequence[np.ndarray]) -> dict[str, Tensor]:
        """The `source` and `source_lengths` of spectrograms (S, F), padded by zeros."""
        lengths = [len(one) for one in spectrograms]
        source = torch.zeros(len(spectrograms), max(lengths), self.log_mel.bands)
        for row, one in enumerate(spectrograms):
            source[row, : len(one)] = torch.from_numpy(one)
        return {"source": source, "source_lengths": torch.tensor(lengths)}

    def text(self, tokens: Sequence[int]) -> str:
        """The text of token ids."""
        return decode(tokens, self.characters)

    def check(self) -> None:
        self.log_mel.check()
        if self.longest <= 0:
            raise UserError(f"the longest sound lasts {self.longest} s, but must last longer than 0")

    def sizes(self) -> dict[str, int]:
        return {"bands": self.log_mel.bands, "vocabulary": SPECIAL + len(self.characters)}
