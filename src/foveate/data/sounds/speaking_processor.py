"""Texts and the sounds in which they are said become tensors: characters to read, audio tokens to write."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from foveate.contracts import Batch, label_batch
from foveate.data.dataset import Dataset
from foveate.data.processor import Processor
from foveate.data.ragged import padded
from foveate.data.sounds.codec import AudioCodec
from foveate.data.sounds.labelled import LabelledSound
from foveate.data.tokens.character_tokens import SPECIAL, encode, teacher_forcing
from foveate.errors import at_least
from foveate.special_tokens import LEARNED, SpecialTokens


class PreparedSpeaking(NamedTuple):
    """The characters of a text and the end token, and the tokens of its sound."""

    text: list[int]
    sound: list[int]


@dataclass
class SpeakingProcessor(Processor[LabelledSound]):
    """Turns texts and their sounds into inputs `source` (B, S), `source_lengths` and `target` (B, T), and labels."""

    codec: AudioCodec
    special: ClassVar[SpecialTokens] = LEARNED

    characters: str
    """The characters that can be read; token ids are their places, after the special ones."""
    longest: int
    """Audio tokens of the longest sound in training."""
    texts: tuple[str, ...]
    """The different texts of the training, the most frequent ones."""

    def prepare(self, dataset: Dataset[LabelledSound]) -> list[PreparedSpeaking]:
        return [
            PreparedSpeaking(self.read(one.label), [SPECIAL + int(code) for code in self.codec.encode(one.read())])
            for one in dataset
        ]

    def cost(self, prepared: PreparedSpeaking) -> int:
        """Audio tokens."""
        return len(prepared.sound) + 1

    def batch(self, prepared: Sequence[PreparedSpeaking], generator: np.random.Generator | None) -> Batch:
        target, labels = teacher_forcing([one.sound for one in prepared])
        return label_batch({**self.inputs([one.text for one in prepared]), "target": target}, labels, "sounds")

    def read(self, text: str) -> list[int]:
        """The tokens of a text and the end token."""
        return [*encode(text, self.characters), LEARNED.end]

    def inputs(self, texts: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """The `source` and `source_lengths` of the tokens of texts."""
        source, lengths = padded([np.array(text) for text in texts], LEARNED.pad)
        return {"source": torch.as_tensor(source), "source_lengths": torch.as_tensor(lengths)}

    def codes(self, tokens: Sequence[int]) -> list[int]:
        """The codes of audio tokens; special tokens are left out."""
        return [token - SPECIAL for token in tokens if token >= SPECIAL]

    def check(self) -> None:
        self.codec.check()
        at_least(1, "longest", self.longest)

    def sizes(self) -> dict[str, int]:
        return {"src_vocab": SPECIAL + len(self.characters), "tgt_vocab": SPECIAL + len(self.codec.codes)}
