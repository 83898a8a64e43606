"""Pairs of texts become the inputs of a model that tells whether they belong together."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from foveate.config import from_dict
from foveate.contracts import Batch
from foveate.data.text.match_pairs import match_inputs, with_wrong_pairs
from foveate.data.text.pair_processor import PairProcessor, TokenPair
from foveate.files import read_json

RULES = "rules.json"


@dataclass
class Thresholds:
    """What `rules.json` says."""

    thresholds: dict[str, float]
    """Of each rule, by what it measures."""


@dataclass
class MatchProcessor(PairProcessor):
    """Turns pairs into batches of right and wrong ones: each pair once as it is, and once with another target of its
    batch.

    That has about the same length, so length tells nothing; every target is in one right and one wrong pair, so neither
    does the target alone. The wrong pairs are drawn anew in each epoch.

    inputs: `source` (B, S) and `target` (B, T), both ending with an end token and padded, `source_lengths` and
    `target_lengths` (B,), and `others` (B,), the rows whose targets make the wrong pairs. labels (B, 2): RIGHT for
    a source with its own target; WRONG for it with the other one, or IGNORE where that is right after all.
    """

    thresholds: dict[str, float]
    """Of the rules to compare a model with, fitted to the training text."""

    def batch(self, prepared: Sequence[TokenPair], generator: np.random.Generator | None) -> Batch:
        generator = generator or np.random.default_rng(0)
        return with_wrong_pairs(super().batch(prepared, generator), self.target.special.pad, generator)

    def inputs(self, pairs: Sequence[tuple[str, str]], budget: int) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
        """Batches to judge: the places of their pairs, and the inputs."""
        return match_inputs(*self.encode(pairs), (self.source.special, self.target.special), budget)

    def files(self) -> dict[str, Callable[[Path], object]]:
        rules = json.dumps({"thresholds": self.thresholds})
        return {**super().files(), RULES: lambda path: path.write_text(rules, encoding="utf-8")}

    @classmethod
    def load(cls, folder: Path) -> "MatchProcessor":
        return cls(*cls.load_tokenizers(folder), from_dict(Thresholds, read_json(folder / RULES), RULES).thresholds)
