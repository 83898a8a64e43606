"""Pairs of texts become the inputs of a model that tells whether they belong together."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from foveate.config import from_dict
from foveate.data.match_batches import match_inputs
from foveate.data.pair_processor import PairProcessor
from foveate.files import read_json

RULES = "rules.json"


@dataclass
class Thresholds:
    """What `rules.json` says."""

    thresholds: dict[str, float]
    """Of each rule, by what it measures."""


@dataclass
class MatchProcessor(PairProcessor):
    """The tokenizers of both sides, and the rules to compare a model with, fitted to the training text.

    Batches to learn from come from `foveate.data.MatchBatches`, which draws the wrong pairs.
    """

    thresholds: dict[str, float]

    def inputs(self, pairs: Sequence[tuple[str, str]], budget: int) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
        """Batches to judge: the places of their pairs, and the inputs."""
        return match_inputs(*self.encode(pairs), (self.source.special, self.target.special), budget)

    def files(self) -> dict[str, Callable[[Path], object]]:
        rules = json.dumps({"thresholds": self.thresholds})
        return {**super().files(), RULES: lambda path: path.write_text(rules, encoding="utf-8")}

    @classmethod
    def load(cls, folder: Path) -> "MatchProcessor":
        return cls(*cls.load_tokenizers(folder), from_dict(Thresholds, read_json(folder / RULES), RULES).thresholds)
