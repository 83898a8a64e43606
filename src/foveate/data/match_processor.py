"""Pairs of texts become the inputs of a model that tells whether they belong together."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from foveate.config import from_dict
from foveate.contracts import Tokenizer
from foveate.data.bert_tokenizer import load_text_tokenizer
from foveate.data.match_batches import match_inputs
from foveate.data.processor import SavedProcessor
from foveate.files import read_json

SOURCE_TOKENIZER, TARGET_TOKENIZER, RULES = "source_tokenizer.json", "target_tokenizer.json", "rules.json"


@dataclass
class Thresholds:
    """What `rules.json` says."""

    thresholds: dict[str, float]
    """Of each rule, by what it measures."""


@dataclass
class MatchProcessor(SavedProcessor):
    """The tokenizers of both sides, and the rules to compare a model with, fitted to the training text.

    Batches to learn from come from `foveate.data.MatchBatches`, which draws the wrong pairs.
    """

    source: Tokenizer
    target: Tokenizer
    thresholds: dict[str, float]

    def encode(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[list[int]], list[list[int]]]:
        """The token ids of the sources and of the targets."""
        return self.source.encode([one for one, _ in pairs]), self.target.encode([other for _, other in pairs])

    def inputs(self, pairs: Sequence[tuple[str, str]], budget: int) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
        """Batches to judge: the places of their pairs, and the inputs."""
        return match_inputs(*self.encode(pairs), budget)

    def sizes(self) -> Mapping[str, int]:
        return {"src_vocab": len(self.source), "tgt_vocab": len(self.target)}

    @property
    def summary(self) -> str:
        sides = dict.fromkeys((self.source, self.target))
        return f"{' and '.join(f'{len(side):,}' for side in sides)} tokens"

    def files(self) -> dict[str, Callable[[Path], object]]:
        rules = json.dumps({"thresholds": self.thresholds})
        return {
            SOURCE_TOKENIZER: self.source.save,
            TARGET_TOKENIZER: self.target.save,
            RULES: lambda path: path.write_text(rules, encoding="utf-8"),
        }

    @classmethod
    def load(cls, folder: Path) -> "MatchProcessor":
        source, target = (load_text_tokenizer(folder / name) for name in (SOURCE_TOKENIZER, TARGET_TOKENIZER))
        return cls(source, target, from_dict(Thresholds, read_json(folder / RULES), RULES).thresholds)
