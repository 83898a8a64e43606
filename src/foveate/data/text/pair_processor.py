"""What a model keeps that reads pairs of texts, such as sentences and their translations."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from foveate.contracts import IGNORE, Batch, Tokenizer, label_batch
from foveate.data.processor import Processor
from foveate.data.ragged import Numbers, padded
from foveate.data.tokens.bert_tokenizer import load_text_tokenizer

SOURCE_TOKENIZER, TARGET_TOKENIZER = "source_tokenizer.json", "target_tokenizer.json"


class TokenPair(NamedTuple):
    """A pair as token ids, with those around either side."""

    source: Numbers
    target: Numbers


Around = tuple[Sequence[int], Sequence[int]]
"""The token ids before a text and behind it."""


class EncodesPairs(Processor[Any]):
    """A processor of pairs of texts, which may be streamed."""

    @property
    @abstractmethod
    def around(self) -> tuple[Around, Around]:
        """What is read around a source and around a target."""

    @abstractmethod
    def encode(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]]]:
        """The token ids of the sources and of the targets."""


@dataclass
class PairProcessor(EncodesPairs):
    """Turns pairs into batches to train a translator on. The tokenizer is the same one twice where both sides share a
    vocabulary.

    inputs: `source` (B, S), with the end token, and `target` (B, T), beginning with the start token, both padded;
    `source_lengths` and `target_lengths` (B,). labels (B, T): the target one place on, with its end, then IGNORE.
    """

    source: Tokenizer
    target: Tokenizer
    unit: str = field(default="tokens", kw_only=True)
    """What texts are cut into, for the user."""

    @property
    def around(self) -> tuple[Around, Around]:
        special = self.target.special
        return ((), (self.source.special.end,)), ((special.start,), (special.end,))

    def encode(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]]]:
        return self.source.encode([one for one, _ in pairs]), self.target.encode([other for _, other in pairs])

    def cost(self, prepared: TokenPair) -> int:
        """The places of the longer side."""
        return max(len(prepared.source), len(prepared.target) - 1)

    def tie_break(self, prepared: TokenPair) -> int:
        """How much longer the source is: it rises and falls in turn, so that a batch that reaches from one cost to the
        next finds the other side equally long on both sides of the step."""
        excess = len(prepared.source) - len(prepared.target)
        return excess if self.cost(prepared) % 2 == 0 else -excess

    def batch(self, prepared: Sequence[TokenPair], generator: np.random.Generator | None) -> Batch:
        source, source_lengths = padded([pair.source for pair in prepared], self.source.special.pad)
        target, target_lengths = padded([pair.target[:-1] for pair in prepared], self.target.special.pad)
        labels, _ = padded([pair.target[1:] for pair in prepared], IGNORE)
        inputs = {
            "source": source,
            "source_lengths": source_lengths,
            "target": target,
            "target_lengths": target_lengths,
        }
        return label_batch(inputs, labels, "pairs")

    def sizes(self) -> Mapping[str, int]:
        return {"src_vocab": len(self.source), "tgt_vocab": len(self.target)}

    @property
    def summary(self) -> str:
        sides = dict.fromkeys((self.source, self.target))
        return f"{' and '.join(f'{len(side):,}' for side in sides)} {self.unit}"

    def files(self) -> dict[str, Callable[[Path], object]]:
        return {SOURCE_TOKENIZER: self.source.save, TARGET_TOKENIZER: self.target.save}

    @classmethod
    def load(cls, folder: Path) -> "PairProcessor":
        return cls(*cls.load_tokenizers(folder))

    @staticmethod
    def load_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
        """The tokenizers of a run folder. Raises UserError where they are missing or damaged."""
        return load_text_tokenizer(folder / SOURCE_TOKENIZER), load_text_tokenizer(folder / TARGET_TOKENIZER)
