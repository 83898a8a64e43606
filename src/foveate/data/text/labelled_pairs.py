"""Pairs of texts with a label each, read together by one encoder: `[CLS] a [SEP] b [SEP]` (Devlin et al. 2019)."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from foveate.config import from_dict
from foveate.contracts import Batch, Tokenizer, label_batch
from foveate.data.dataset import Dataset
from foveate.data.processor import Processor
from foveate.data.ragged import padded
from foveate.data.text.files import Paths, as_paths
from foveate.data.text.preferences import TOKENIZER, read_table
from foveate.data.tokens.bert_tokenizer import BertTokenizer, load_text_tokenizer
from foveate.files import read_json

LABELS = "labels.json"


@dataclass(frozen=True)
class LabelledPair:
    """Two texts, and a label of both together."""

    place: str
    label: str
    first: str
    second: str

    def content(self) -> bytes:
        return f"{self.label}\0{self.first}\0{self.second}".encode()


def read_labelled_pairs(paths: Paths) -> Dataset[LabelledPair]:
    """Files of `label<TAB>first<TAB>second` on each line. Raises UserError, which names the line, for any other."""
    paths = as_paths(paths)
    wrong = "two tabs must part a label, a text and another text; none may be empty"
    return read_table(paths, lambda place, parts: LabelledPair(place, *parts), 3, wrong)


def count_pair_labels(pairs: Dataset[LabelledPair]) -> dict[str, int]:
    """How often each label occurs, in alphabetical order."""
    return dict(sorted(Counter(pair.label for pair in pairs).items()))


@dataclass
class PairRule:
    """Decides between two labels by a number measured of both texts: one label from the threshold on, the other below
    it."""

    threshold: float
    above: str
    below: str


@dataclass
class PairLabels:
    """What `labels.json` says."""

    counts: dict[str, int]
    """How often each label occurs in training; the classes of the model in their order."""
    segments: bool
    rules: dict[str, PairRule] = field(default_factory=dict)


@dataclass
class LabelledPairProcessor(Processor[LabelledPair]):
    """Turns pairs into inputs `tokens` (B, T), `lengths` (B,) and, with `segments`, `token_types` (B, T); labels
    (B, 1)."""

    tokenizer: Tokenizer
    labels: dict[str, int]
    """How often each label occurs in training; the classes of the model in their order."""
    segments: bool
    """Whether the model has a vector of its own for the tokens of the second text; RoBERTa has none."""
    rules: dict[str, PairRule] = field(default_factory=dict)
    """Rules to compare a model with, by what they measure, fitted to the training text."""

    def __post_init__(self) -> None:
        self._numbers = {label: number for number, label in enumerate(self.labels)}
        special = self.tokenizer.special
        begin, end = (special.start,), (special.end,)
        between: tuple[int, ...] = end
        if isinstance(self.tokenizer, BertTokenizer):
            # RoBERTa has two separators between its texts (Liu et al. 2019)
            between = end * 2 if self.tokenizer.pieces(begin) == ["<s>"] else end
        self.around = begin, between, end

    @property
    def num_special_tokens(self) -> int:
        """How many tokens are read beside those of both texts."""
        return sum(map(len, self.around))

    def encode(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[list[int], list[int]]]:
        """The token ids of both texts of each pair."""
        firsts, seconds = (self.tokenizer.encode([pair[side] for pair in pairs]) for side in (0, 1))
        return list(zip(firsts, seconds, strict=True))

    def join(self, pair: tuple[Sequence[int], Sequence[int]]) -> tuple[list[int], list[int]]:
        """Token ids of both texts as one row, and of each token 0 for the first text and 1 for the second."""
        begin, between, end = self.around
        first, second = [*begin, *pair[0], *between], [*pair[1], *end]
        return first + second, [0] * len(first) + [1] * len(second)

    def inputs(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> dict[str, Tensor]:
        """The inputs of a model for the token ids of pairs."""
        rows, types = zip(*map(self.join, pairs), strict=True)
        tokens, lengths = padded([np.array(row) for row in rows], self.tokenizer.special.pad)
        found = {"tokens": tokens, "lengths": lengths}
        if self.segments:
            found["token_types"] = padded([np.array(row) for row in types], 0)[0]
        return found

    def prepare(self, dataset: Dataset[LabelledPair]) -> list[tuple[tuple[list[int], list[int]], int]]:
        tokens = self.encode([(pair.first, pair.second) for pair in dataset])
        return list(zip(tokens, (self._numbers[pair.label] for pair in dataset), strict=True))

    def cost(self, prepared: tuple[tuple[list[int], list[int]], int]) -> int:
        return sum(map(len, prepared[0])) + self.num_special_tokens

    def batch(
        self,
        prepared: Sequence[tuple[tuple[list[int], list[int]], int]],
        generator: np.random.Generator | None,
    ) -> Batch:
        pairs, labels = zip(*prepared, strict=True)
        return label_batch(self.inputs(pairs), torch.tensor(labels)[:, None], "pairs")

    def sizes(self) -> Mapping[str, int]:
        return {"vocabulary": len(self.tokenizer), "classes": len(self.labels)}

    @property
    def summary(self) -> str:
        return f"{len(self.tokenizer):,} tokens, {len(self.labels)} labels"

    def files(self) -> dict[str, Callable[[Path], object]]:
        rules = {name: vars(rule) for name, rule in self.rules.items()}
        text = json.dumps({"counts": self.labels, "segments": self.segments, "rules": rules}, ensure_ascii=False)
        return {TOKENIZER: self.tokenizer.save, LABELS: lambda path: path.write_text(text, encoding="utf-8")}

    @classmethod
    def load(cls, folder: Path) -> "LabelledPairProcessor":
        found = from_dict(PairLabels, read_json(folder / LABELS), LABELS)
        return cls(load_text_tokenizer(folder / TOKENIZER), found.counts, found.segments, found.rules)
