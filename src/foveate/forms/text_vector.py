"""Vectors of texts, which are near where the texts mean the same.

B batch of pairs    C width of a vector
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foveate.data.buckets import Buckets
from foveate.data.dataset import Dataset
from foveate.data.text.pair_buckets import PairBuckets, SideTokenizer, TokenPair
from foveate.errors import at_least
from foveate.forms.answers import Answer
from foveate.forms.compared_text import ComparedText, regrouped
from foveate.forms.form import Changes, Learned, MapRow, OutputForm
from foveate.forms.label import pooled_row
from foveate.forms.processor import PreparedExample, Processor, RowProcessor
from foveate.metrics.retrieval import as_recall, letter_vectors, target_ranks

LONGEST_LINE = 400
"""Characters of an answer that a page shows: a vector has hundreds of numbers."""

Pair = tuple[str, str]


@dataclass
class NearOptions:
    """What is asked of a model that gives texts vectors."""

    near: Path | None = None
    """A file of sentences, one a line: print the nearest of them and their cosines, not the vector."""
    count: int = 5
    """How many of the nearest sentences to print."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(1, "count", self.count)


@dataclass
class PairedText(ComparedText):
    """A text. Pairs of texts that mean the same are tokenized as they are streamed from disk."""

    def buckets(self, train: Any, processor: Processor) -> Buckets:
        side = SideTokenizer(self.words, *self.around)
        return PairBuckets(train, RowProcessor(processor, both_texts), (side, side), self.max_length)


def both_texts(pair: TokenPair) -> PreparedExample:
    """Which texts of a batch are equal is told by the tokens of both."""
    return PreparedExample(pair, pair)


@dataclass(kw_only=True)
class VectorAnswer(Answer):
    """The vector of a text."""

    vector: list[float] = field(default_factory=list)
    near: list[tuple[float, str]] = field(default_factory=list)
    """The cosine of each of the nearest sentences, and the sentence; the nearest first."""
    pair: Tensor | None = field(default=None, repr=False)
    """The vectors of both texts of an example (2, C)."""

    @property
    def cells(self) -> list[str]:
        """The nearest sentences, or else the numbers of the vector."""
        if self.near:
            return [f"{cosine:.3f} {sentence}" for cosine, sentence in self.near]
        return [" ".join(f"{number:.6f}" for number in self.vector)] if self.vector else []

    @property
    def look_line(self) -> str:
        line = super().look_line
        return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"

    @property
    def title(self) -> str:
        return self.near[0][1] if self.near else f"vector of {len(self.vector):,} numbers"


@dataclass
class TextVector(OutputForm):
    """A vector: outputs with logits (2B, 1, C), a first text's and behind it a second one's.

    Targets `sources` and `labels` (B, 1) are the numbers of the first equal first text, and of the first equal second
    text, of the batch.
    """

    options: ClassVar[type[Any]] = NearOptions
    metric: ClassVar[str] = "recall_1"

    normalized: Learned[bool] = True
    """Whether vectors have a length of 1, so that their dot product is their cosine."""

    def prepare(self, example: Pair) -> list[Any]:
        """The pair itself, which `PairedText.buckets` replaces by its tokens."""
        return [example]

    def tensors(
        self, prepared: Sequence[TokenPair], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        sources, labels = (first_equal([tuple(pair[side].tolist()) for pair in prepared]) for side in (0, 1))
        return {}, {"labels": labels, "sources": sources}, torch.ones(len(prepared), dtype=torch.int64)

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Any], options: Any
    ) -> list[VectorAnswer]:
        vectors = model(**inputs).logits[:, 0].float().cpu()
        if self.normalized:
            vectors = F.normalize(vectors, dim=-1)
        found = []
        for one, own in zip(prepared, regrouped(prepared, [*vectors]), strict=True):
            whole = isinstance(one, TokenPair)
            found.append(VectorAnswer(pair=torch.stack([*own])) if whole else VectorAnswer(vector=own[0].tolist()))
        return found

    def nothing(self) -> VectorAnswer:
        return VectorAnswer()

    def metrics(self, answers: Sequence[VectorAnswer], examples: Sequence[Pair]) -> dict[str, float]:
        """How often a text's own partner is the nearest of all, or one of the nearest five."""
        return as_recall(pair_ranks(answers, examples))

    def baselines(
        self, reads: Any, examples: Sequence[Pair], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """The letters that texts share."""
        sources, targets = map(list, zip(*examples, strict=True))
        ranks = target_ranks(*letter_vectors(sources, targets), sources, targets)
        chance = {"recall_1": 100 / len(targets), "recall_5": min(100.0, 500 / len(targets))}
        return {"shared letter triples, TF-IDF": as_recall(ranks), "chance": chance}

    def notes(self, examples: Sequence[Pair]) -> list[str]:
        return [f"each source among {len(examples):,} targets"]

    def rows(self, sight: Any, model: nn.Module, answer: VectorAnswer, before: int) -> list[MapRow]:
        return pooled_row("vector", sight, model, before)


def first_equal(texts: Sequence[tuple[int, ...]]) -> Tensor:
    """The number of the first text that is equal to each (B, 1)."""
    first = {text: place for place, text in reversed([*enumerate(texts)])}
    return torch.tensor([[first[text]] for text in texts])


def pair_ranks(answers: Sequence[VectorAnswer], examples: Sequence[Pair]) -> list[int]:
    """How many second texts are at least as near to each first one as its own, by the vectors of the answers."""
    sources, targets = map(list, zip(*examples, strict=True))
    queries, others = torch.stack([one.pair for one in answers if one.pair is not None], 1)
    return target_ranks(queries, others, sources, targets)


def nearest(vectors: Tensor, others: Tensor, texts: Sequence[str], count: int) -> list[list[tuple[float, str]]]:
    """The cosines of the nearest of some texts, whose vectors `others` are, and these texts, for each vector."""
    cosines = F.normalize(vectors, dim=-1) @ F.normalize(others, dim=-1).T
    best = cosines.topk(min(count, len(texts)))
    rows = zip(best.values.tolist(), best.indices.tolist(), strict=True)
    return [[(value, texts[place]) for value, place in zip(values, places, strict=True)] for values, places in rows]
