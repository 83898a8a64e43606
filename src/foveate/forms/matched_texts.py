"""Two texts that are read one without the other, and how probable it is that they belong together.

B batch    S tokens of the first text    T tokens of the second
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from foveate.baselines.match_rules import MEASURES, ThresholdRule, fit
from foveate.contracts import IGNORE, Batch, Output, Picture, Tokenizer, count_labels
from foveate.data.buckets import Buckets
from foveate.data.ragged import padded
from foveate.data.table import SOURCE, TARGET, Column
from foveate.data.text.match_pairs import RIGHT, WRONG, Judged, MatchBatch, judged_pairs, partners
from foveate.data.text.pair_buckets import PairBuckets, SideTokenizer, TokenPair
from foveate.errors import UserError, one_line, quoted
from foveate.forms.answers import Answer
from foveate.forms.form import Changes, Learned, MapRow, Naming, OutputForm
from foveate.forms.grids import GridFinder
from foveate.forms.inputs import require_text
from foveate.forms.naming import token_names
from foveate.forms.processor import PreparedExample, Processor, RowProcessor
from foveate.forms.scored import ScoredForm, label_numbers
from foveate.forms.translation import SOURCE_TOKENIZER, TARGET_TOKENIZER, SourceText
from foveate.forms.written import require_tokenizer
from foveate.metrics.classification import accuracy, macro_f1, roc_auc
from foveate.viewer import Alignment, plot_alignments
from foveate.viewer.protocol import Input
from foveate.viewer.sides import SideNames, SidePair

FITTED_TO = 10_000
"""Pairs from all over the training text that the rules beside the model are fitted to, at most."""

TEST_SEED = 1
"""Of the wrong pairs that a model is measured on, and that rules are fitted to."""

QUERY = "query"
"""Stands for the learned query in pictures."""

Texts = tuple[str, str]


class PreparedPair(NamedTuple):
    """The tokens of two texts, each with its end."""

    source: np.ndarray
    target: np.ndarray
    texts: Texts = ("", "")
    """The texts themselves, of a model in use."""


@dataclass(frozen=True)
class PairNames:
    """The names of the tokens of either text. Called, it names a side by its length alone."""

    source: Naming
    target: Naming

    def __call__(self, count: int) -> SideNames:
        return self.source(count) or self.target(count)


@dataclass
class MatchedTexts(SourceText):
    """Two texts: inputs `source` (B, S), `source_lengths`, `target` (B, T) and `target_lengths`."""

    columns: ClassVar[tuple[Column, ...]] = (SOURCE, TARGET)
    saved_apart: ClassVar[Mapping[str, str]] = {"tokenizer": SOURCE_TOKENIZER, "target_tokenizer": TARGET_TOKENIZER}
    name: ClassVar[str] = "pair"

    lowercase: bool = False
    """Read lower case only."""
    target_tokenizer: Learned[Any] = None
    """That of the second texts: the same one where both share a vocabulary."""

    def check_learned(self) -> None:
        super().check_learned()
        require_tokenizer(self, "target_tokenizer")

    def check_training(self, model: nn.Module, batch: int) -> None:
        super().check_training(model, batch)
        if getattr(model.config, "one_encoder", False) and not self.shared:
            raise UserError(
                "one encoder for both texts needs one vocabulary: share it, or set --architecture.no-one-encoder"
            )

    def learn(self, train: Any, architecture: Any) -> "MatchedTexts":
        found: Any = super().learn(train, architecture)
        found.target_tokenizer = found.tokenizer if self.shared else self.train_tokenizer(train.targets())
        return found

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """That of the first texts, and that of the second ones."""
        return self.words, self.target_tokenizer

    def sizes(self) -> dict[str, int]:
        return {"src_vocab": len(self.words), "tgt_vocab": len(self.target_tokenizer)}

    @property
    def summary(self) -> str:
        sides = (self.words,) if self.shared else self.tokenizers
        return f"{' and '.join(f'{len(side):,}' for side in sides)} tokens"

    def open(self, given: str) -> Texts:
        """Both sides of `first<TAB>second`, one of which may be empty. Raises UserError for what is not a pair."""
        first, *others = given.split("\t")
        if len(others) != 1:
            raise UserError(f"{quoted(given)} has {len(others)} tabs, where one tab must separate two texts")
        return first.strip(), others[0].strip()

    def receive(self, given: Input, name: str) -> Texts:
        """Both texts, given as `first<TAB>second` or as two lines."""
        text = require_text(given, name).strip("\r\n")
        lines = [line for line in text.splitlines() if line.strip()]
        if "\t" not in text and len(lines) != 2:
            raise UserError(f"{name} reads two texts: separate them by a newline or a tab")
        pair = self.open(text if "\t" in text else "\t".join(lines))
        if pair is None or not all(pair):
            raise UserError("a text of the pair is empty: there is nothing to look at")
        return pair

    def value(self, example: Texts) -> Texts:  # type: ignore[override]
        return example

    def place(self, example: Texts) -> str:
        return "\t".join(example)

    def warnings(self, name: str, examples: Sequence[Texts]) -> list[str]:
        return []

    def buckets(self, train: Any, processor: Processor) -> Buckets:
        """Pairs are tokenized as they are streamed from disk."""
        source, target = (SideTokenizer(own, (), (own.special.end,)) for own in self.tokenizers)
        return PairBuckets(train, RowProcessor(processor, both_sides), (source, target), self.max_length)

    def prepare(self, value: Texts) -> PreparedPair:
        sides = zip(self.tokenizers, value, strict=True)
        source, target = (np.array([*own.encode([text])[0], own.special.end], np.int32) for own, text in sides)
        return PreparedPair(source, target, value)

    def cost(self, prepared: TokenPair | PreparedPair) -> int:
        """The tokens of the first text; the second ones are the cost of the target."""
        return len(prepared.source)

    def places(self, prepared: PreparedPair) -> int:
        return max(len(prepared.source), len(prepared.target))

    def positions(self, prepared: PreparedPair) -> int:
        return self.places(prepared)

    def batch(self, inputs: dict[str, Tensor], targets: dict[str, Tensor], weight: Tensor) -> Batch:
        return MatchBatch(inputs, targets, weight, "pairs")

    def tensors(
        self, prepared: Sequence[TokenPair | PreparedPair], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        found: dict[str, Tensor] = {}
        for name, own in zip(("source", "target"), self.tokenizers, strict=True):
            rows = [getattr(one, name) for one in prepared]
            found[name], found[f"{name}_lengths"] = padded(rows, own.special.pad)
        return found, Changes()

    def longer_than_training(self, prepared: PreparedPair) -> bool:
        return self.places(prepared) - 1 > self.max_length

    def names_of(self, prepared: PreparedPair) -> tuple[list[str], list[str]]:
        """What to call the tokens of either text."""
        sides = zip(self.tokenizers, prepared[:2], strict=True)
        source, target = ([*own.pieces(side[:-1].tolist()), self.end_sign] for own, side in sides)
        return source, target

    def axis(self, value: Texts, prepared: PreparedPair, grid: GridFinder) -> Naming:
        return PairNames(*map(token_names, self.names_of(prepared)))

    def draw(self, value: Texts, rows: Sequence[MapRow], title: str, grid: GridFinder) -> Picture | None:
        """A map of each text, or one for both where one encoder reads the same twice."""
        of_sites: dict[str, list[Tensor]] = {}
        for row in rows:
            of_sites.setdefault(row.site, []).append(row.weights)
        sides = zip(of_sites.values(), self.names_of(self.prepare(value)), strict=False)
        maps = [Alignment(torch.stack(weights), [QUERY] * len(weights), names) for weights, names in sides]
        return plot_alignments(maps, columns=1) if maps else None


def both_sides(pair: TokenPair) -> PreparedExample:
    """The wrong pairs of a batch are made of all its texts."""
    return PreparedExample(pair, pair)


@dataclass(kw_only=True)
class MatchAnswer(Answer):
    """How probable it is that two texts belong together."""

    called: ClassVar[str] = "Do they belong together?"

    source: str = ""
    target: str = ""
    probability: float = field(default=0.0)

    @property
    def cells(self) -> list[str]:
        """The probability and both texts, ready to be sorted or filtered."""
        return [f"{self.probability:.4f}", self.source, self.target] if self.source or self.target else []

    @property
    def look_line(self) -> str:
        return f"{self.called} {self.probability:.4f}"

    @property
    def title(self) -> str:
        return f"{one_line(self.source)} = {one_line(self.target)}: {self.probability:.2f}"


@dataclass
class Match(ScoredForm, OutputForm):
    """Whether two texts belong together: logits of "no" and "yes" (B, 1, 2).

    In training each pair is once as it is, and once with another target of its batch. That has about the same length,
    so length tells nothing; every target is in one right and one wrong pair, so neither does the target alone. The
    wrong pairs are drawn anew in each epoch.

    A further input `others` (B,) are the rows whose targets make the wrong pairs. Targets `labels` (B, 2) are RIGHT for
    a source with its own target; WRONG for it with the other one, or IGNORE where that is right after all.
    """

    thresholds: Learned[dict[str, float]] = field(default_factory=dict)
    """Of the rules to compare a model with, by what they measure, fitted to the training text."""

    def check_learned(self) -> None:
        if unknown := self.thresholds.keys() - MEASURES.keys():
            raise UserError(f"there is no rule {min(unknown)}")

    def learn(self, train: Any, reads: Any, architecture: Any) -> "Match":
        found, pairs = copy(self), judged_pairs(train.some(FITTED_TO), TEST_SEED)
        found.thresholds = {rule.name: rule.threshold for rule in (fit(name, pairs) for name in MEASURES)}
        return found

    def prepare(self, example: Texts) -> list[Any]:
        """The pair itself, which `MatchedTexts.buckets` replaces by its tokens."""
        return [example]

    def cost(self, prepared: TokenPair) -> int:
        return len(prepared.target)

    def tensors(
        self, prepared: Sequence[TokenPair], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        lengths = np.array([len(pair.target) for pair in prepared])
        others = partners(lengths, generator or np.random.default_rng(0))
        keys = [(pair.source.tobytes(), pair.target.tobytes()) for pair in prepared]
        known = set(keys)
        drawn = ((source, keys[other][1]) for (source, _), other in zip(keys, others.tolist(), strict=True))
        wrong = torch.tensor([IGNORE if pair in known else WRONG for pair in drawn])
        labels = torch.stack([torch.full_like(wrong, RIGHT), wrong], 1)
        return {"others": torch.from_numpy(others)}, {"labels": labels}, count_labels(labels)

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[PreparedPair], options: Any
    ) -> list[MatchAnswer]:
        """A pair with an empty text does not belong together."""
        shares = model(**inputs).logits.float().softmax(-1)[:, 0, RIGHT].tolist()
        return [
            MatchAnswer(source=source, target=target, probability=share if source and target else 0.0)
            for (source, target), share in zip((one.texts for one in prepared), shares, strict=True)
        ]

    def nothing(self) -> MatchAnswer:
        return MatchAnswer()

    def metrics(self, answers: Sequence[MatchAnswer], examples: Sequence[Judged]) -> dict[str, float]:
        return match_metrics([one.probability for one in answers], 0.5, examples)

    def baselines(
        self, reads: Any, examples: Sequence[Judged], train: Callable[[], Any]
    ) -> dict[str, dict[str, float]]:
        """Rules that were fitted to the training text."""
        rules = [ThresholdRule(name, self.thresholds[name]) for name in MEASURES if name in self.thresholds]
        return {rule.name: match_metrics(rule.measure(examples), rule.threshold, examples) for rule in rules}

    def scored_labels(self, output: Output, answer: MatchAnswer) -> Tensor:
        return torch.tensor([[RIGHT if answer.probability >= 0.5 else WRONG]])

    def named(self, text: str, answer: MatchAnswer) -> MatchAnswer:
        (number,) = label_numbers(["no", "yes"], [text])
        return replace(answer, probability=float(number))

    def scored_answer(self, labels: Tensor, answer: MatchAnswer) -> str:
        return "yes" if int(labels) == RIGHT else "no"

    def side_names(self, sight: Any, along: Naming, answer: MatchAnswer) -> dict[str, SidePair]:
        """One learned query attends to each text. A shared encoder reads the target second; equal texts share a map."""
        assert isinstance(along, PairNames)
        names: dict[str, SidePair] = {}
        for site in sight.sites:
            queries, keys = sight[site].shape[2:]
            side = along.target if site.startswith("target_encoder") or site.endswith("#2") else along.source
            names[site] = ([QUERY] * queries, side(keys))
        return names

    def rows(self, sight: Any, model: nn.Module, answer: MatchAnswer, before: int) -> list[MapRow]:
        """Where the query looked in either text."""
        maps = ((site, sight[site].weights()[0, 0].float().cpu()) for site in sight.sites)
        return [MapRow(QUERY, weights, site) for site, rows in maps for weights in rows]


def match_metrics(scores: Sequence[float], threshold: float, pairs: Sequence[Judged]) -> dict[str, float]:
    """How well scores decide, where yes is a score of at least the threshold."""
    found = ["yes" if score >= threshold else "no" for score in scores]
    right = ["yes" if pair.right else "no" for pair in pairs]
    return {
        "accuracy": accuracy(found, right),
        "macro_f1": macro_f1(found, right),
        "roc_auc": roc_auc(scores, [pair.right for pair in pairs]),
    }
