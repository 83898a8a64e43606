"""Two texts that are read as one row, `[CLS] first [SEP] second [SEP]` (Devlin et al. 2019), and labels of both.

B batch    T tokens of both texts, with those around them
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from torch import Tensor

from foveate.baselines.match_rules import MEASURES, fit
from foveate.contracts import Tokenizer
from foveate.data.buckets import Buckets
from foveate.data.dataset import Dataset
from foveate.data.ragged import padded
from foveate.data.splits import Ties
from foveate.data.table import FIRST, SECOND, Column
from foveate.data.text.labelled_pairs import LabelledPair
from foveate.data.text.match_pairs import Judged
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.data.tokens.tokenizers import Tokens
from foveate.errors import UserError, quoted
from foveate.forms.form import Changes, Learned
from foveate.forms.label import Label
from foveate.forms.processor import PreparedExample, Processor
from foveate.forms.read_text import ASKED, unknown_note
from foveate.forms.text import PreparedBuckets, Text, nothing_fits
from foveate.viewer.protocol import Input

FITTED_TO = 10_000
"""Pairs from all over the training text that the rules beside a model are fitted to, at most."""

Pair = tuple[str, str]


class JoinedPair(NamedTuple):
    """Two texts as one row."""

    tokens: np.ndarray
    """Those of both texts and around them (T,)."""
    second: int
    """Where the second text begins."""


@dataclass
class PairText(Text):
    """Two texts, read together: inputs `tokens` (B, T), `lengths` (B,) and, with `segments`, `token_types` (B, T)."""

    columns: ClassVar[tuple[Column, ...]] = (FIRST, SECOND)
    tokens: Tokens = "subwords"
    """What texts are cut into, where there are no trained weights."""
    vocabulary: int = 8000
    """How many of them to learn, at most, where there are no trained weights."""
    lowercase: bool = True
    """Read lower case only, where there are no trained weights."""
    max_length: int = 256
    """Pairs with more tokens than this in both texts together, or than the model has positions for, are left out (and
    counted)."""
    segments: Learned[bool] = True
    """Whether the model has a vector of its own for the tokens of the second text; RoBERTa has none."""

    name: ClassVar[str] = "pair"

    def texts(self, train: Dataset[LabelledPair]) -> Iterator[str]:
        return (text for pair in train for text in self.value(pair))

    def learn(self, train: Dataset[LabelledPair], architecture: Any) -> "PairText":
        found: PairText = super().learn(train, architecture)
        found.segments = (getattr(architecture, "token_types", None) or 0) > 1
        return found

    def advice(self, train: Dataset[LabelledPair], begun: bool) -> list[str]:
        """None: a pair is decided by comparing its texts."""
        return []

    @property
    def signs(self) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        """The tokens before the first text, between both, and behind the second."""
        return signs_of_pairs(self.words)

    @property
    def around(self) -> tuple[Sequence[int], Sequence[int]]:
        before, between, behind = self.signs
        return before, [*between, *behind]

    def open(self, given: str) -> Pair | None:
        """Both sides of `first<TAB>second`; None where one is empty. Raises UserError for what is not a pair."""
        first, *others = given.split("\t")
        if len(others) != 1 and given.strip():
            raise UserError(f"{quoted(given)} has {len(others)} tabs, where one tab must separate two texts")
        pair = first.strip(), "".join(others).strip()
        return pair if all(pair) else None

    def receive(self, given: Input, name: str) -> Pair:
        """Both texts, given as `first<TAB>second` or as two lines."""
        text = "\t".join(line for line in super().receive(given, name).splitlines() if line.strip())
        if text.count("\t") != 1 or (pair := self.open(text)) is None:
            raise UserError(f"{name} reads two texts: separate them by a newline or a tab")
        return pair

    def value(self, example: LabelledPair) -> Pair:  # type: ignore[override]
        return example.first, example.second

    def place(self, example: LabelledPair) -> str:
        return "\t".join(self.value(example))

    def group(self, example: LabelledPair) -> Hashable:
        return self.place(example).casefold()

    def ties(self, example: LabelledPair) -> Ties:
        """The first text too: all pairs with it are on the same side."""
        return {**super().ties(example), "first text": example.first.casefold()}

    def warnings(self, name: str, examples: Sequence[LabelledPair]) -> list[str]:
        return unknown_note(name, self.words, (example.first for example in examples[:ASKED]))

    def buckets(self, train: Dataset[LabelledPair], processor: Processor) -> Buckets:
        """Of the pairs with at most `max_length` tokens. Raises UserError where there is none."""
        most = self.max_length + sum(map(len, self.around))
        firsts, seconds = (self.words.encode([self.value(one)[side] for one in train]) for side in (0, 1))
        prepared, places = [], []
        for example, first, second in zip(train, firsts, seconds, strict=True):
            if len((joined := self.join(first, second)).tokens) <= most:
                prepared.append(PreparedExample(joined, processor.writes.prepare(example)[0]))
                places.append(example.place)
        limit = f"{self.max_length:,} tokens"
        if not prepared:
            raise nothing_fits(train, len(train), limit)
        left_out = f"{len(train) - len(prepared):,} of {len(train):,} {train.unit} left out"
        return PreparedBuckets(
            train.name, prepared, places, processor, f"{train.name}: {left_out} for more than {limit}"
        )

    def join(self, first: Sequence[int], second: Sequence[int]) -> JoinedPair:
        """The tokens of both texts as one row."""
        before, between, behind = self.signs
        row = [*before, *first, *between]
        return JoinedPair(np.array([*row, *second, *behind], np.int32), len(row))

    def prepare(self, value: Pair) -> JoinedPair:
        return self.join(*self.words.encode(list(value)))

    def cost(self, prepared: JoinedPair) -> int:
        return len(prepared.tokens)

    def positions(self, prepared: JoinedPair) -> int:
        return len(prepared.tokens)

    def tensors(  # type: ignore[override]
        self, prepared: Sequence[JoinedPair], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        inputs, changes = super().tensors([one.tokens for one in prepared], generator)
        if self.segments:
            second = [(np.arange(len(one.tokens)) >= one.second).astype(np.int32) for one in prepared]
            inputs["token_types"] = padded(second, 0)[0]
        return inputs, changes

    def longer_than_training(self, prepared: JoinedPair) -> bool:
        return super().longer_than_training(prepared.tokens)

    def names(self, prepared: JoinedPair) -> list[str]:  # type: ignore[override]
        return self.words.pieces(prepared.tokens.tolist())


def signs_of_pairs(tokenizer: Tokenizer) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """The tokens that are read before the first of two texts, between both, and behind the second."""
    if isinstance(tokenizer, TextTokenizer):
        return tokenizer.around_pairs
    begin, end = (tokenizer.special.start,), (tokenizer.special.end,)
    return begin, end, end


@dataclass
class PairRule:
    """Decides between two labels by a number measured of both texts: one label from the threshold on, the other below
    it."""

    threshold: float
    above: str
    below: str


@dataclass
class PairLabel(Label):
    """A label of two texts, with rules to compare a model with."""

    rules: Learned[dict[str, PairRule]] = field(default_factory=dict)
    """By what they measure, fitted to the training text."""

    def learn(self, train: Dataset[LabelledPair], reads: Any, architecture: Any) -> "PairLabel":
        return self._with_rules(super().learn(train, reads, architecture), train)

    def extend(self, trained: Label, train: Dataset[LabelledPair]) -> "PairLabel":
        return self._with_rules(super().extend(trained, train), train)

    def _with_rules(self, learned: Label, train: Dataset[LabelledPair]) -> "PairLabel":
        rules = {} if self.several else fit_rules(train)
        return replace(self, labels=learned.labels, scores=learned.scores, rules=rules)

    def baselines(
        self, reads: Any, examples: Sequence[LabelledPair], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """The rules, where there are two labels, and the most frequent label."""
        ways = {}
        for name, rule in self.rules.items():
            values = (MEASURES[name](example.first, example.second) for example in examples)
            found = [(rule.above if value >= rule.threshold else rule.below,) for value in values]
            ways[name] = self.metrics_of(found, examples)
        return {**ways, **super().baselines(reads, examples, train)}

    def check_learned(self) -> None:
        if unknown := self.rules.keys() - MEASURES.keys():
            raise UserError(f"there is no rule {min(unknown)}")


def fit_rules(train: Dataset[LabelledPair]) -> dict[str, PairRule]:
    """Of each measure the threshold that parts the two labels best; nothing where there are more labels."""
    labels = sorted({pair.label for pair in train})
    if len(labels) != 2:
        return {}
    some, rules = train.some(FITTED_TO), {}
    for name, measure in MEASURES.items():
        tried = []
        for above, below in (labels, labels[::-1]):
            pairs = [Judged(pair.first, pair.second, pair.label == above) for pair in some]
            threshold = fit(name, pairs).threshold
            hits = sum((measure(pair.source, pair.target) >= threshold) == pair.right for pair in pairs)
            tried.append((hits, PairRule(threshold, above, below)))
        rules[name] = max(tried, key=lambda one: one[0])[1]
    return rules
