"""What tasks share that read one text at a time and learn from a text that fits into memory."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import nn

from foveate import models
from foveate.data.buckets import BucketedBatches
from foveate.data.dataset import Dataset
from foveate.data.ragged import within_budget
from foveate.data.text.strided_buckets import text_buckets
from foveate.errors import UserError, at_least
from foveate.forms.checks import without_too_long
from foveate.nn import longest_sequence
from foveate.tasks.examples.data_options import unknown_note
from foveate.tasks.examples.example_source import ExampleSource
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.former.recipe import Architecture, Recipe
from foveate.tasks.former.task import Task
from foveate.tasks.protocols import ModelInputs
from foveate.training import Batches
from foveate.viewer.protocol import Input, LookResult

READ_AROUND = {"bert": 2, "gpt": 1}
"""The families of language models, and how many tokens they read beside a text's."""

TOKENS_TOGETHER = 4096
"""Tokens that are answered about together, padding included."""


@dataclass
class TextExamples(ExampleSource):
    """Which texts to learn from, with a budget in tokens."""

    batch_tokens: int = 2048
    """Tokens of a batch, padding included."""
    max_length: int = 128
    """Texts with more tokens than this are left out (and counted)."""

    def check(self) -> None:
        super().check()
        for name in ("batch_tokens", "max_length"):
            at_least(1, name, getattr(self, name))
        at_least(self.max_length, "the budget of a batch in tokens", self.batch_tokens)


@dataclass(kw_only=True)
class TextTask(Task[Architecture]):
    """A page says how long an example is, and what the model is given to read a text."""

    tokens_name = "tokens"
    """What `length` counts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if around := READ_AROUND.get(self.preset.family):
            longest = self.architecture.max_length - around  # type: ignore[attr-defined]
            self.examples = replace(self.examples, max_length=min(self.examples.max_length, longest))

    @abstractmethod
    def key(self, example: Any) -> str:
        """The text of an example: those that are the same in it are held out together."""

    @abstractmethod
    def lengths(self, processor: Any, examples: Iterable[Any]) -> list[int]:
        """How many tokens each example has."""

    @property
    def room(self) -> float:
        """How many positions the model learns; infinite where there is no limit."""
        family = self.preset.family
        sizes: Any = dict.fromkeys(models.sizes_of_data(family), 1)
        with torch.device("meta"):
            return longest_sequence(models.build(family, replace(self.architecture, **sizes)))  # type: ignore[type-var]

    def positions(self, processor: Any, examples: Iterable[Any]) -> list[int]:
        """How many positions of the model each example takes."""
        return [self.num_special_tokens + length for length in self.lengths(processor, examples)]

    @abstractmethod
    def model_inputs(self, predictor: Predictor, text: str) -> ModelInputs:
        """What the model is given to read one text, and what to call its places."""

    def hold_out(self, train: Dataset[Any], every: int) -> tuple[Dataset[Any], Dataset[Any]]:
        return train.held_out_together(every, self.key)

    def check_length(self, model: nn.Module) -> None:
        Recipe.check_length(self, model)

    def example_contents(self) -> dict[str, str]:
        return Recipe.example_contents(self)

    def batches(self, train: Dataset[Any], processor: Any) -> Batches:
        """Of the examples with at most `max_length` tokens that the model has positions for. Raises UserError where
        there is none."""
        most, room = self.examples.max_length, self.room
        sizes = zip(self.lengths(processor, train), self.positions(processor, train), strict=True)
        fitting = [
            example
            for example, (length, positions) in zip(train, sizes, strict=True)
            if length <= most and positions <= room
        ]
        limit = f"{most:,} {self.tokens_name}" + (f" or {room:,} positions" if room < math.inf else "")
        return self.bucketed(Dataset(train.name, fitting, train.unit, train.notes), len(train), processor, limit)

    def bucketed(self, kept: Dataset[Any], read: int, processor: Any, limit: str) -> Batches:
        """Batches of what was kept of the examples that were read: those within `limit`. Raises UserError where that
        is none."""
        if not len(kept):
            raise UserError(f"{kept.name}: each of the {read:,} {kept.unit} has more than {limit}; raise max_length")
        left_out = f"{read - len(kept):,} of {read:,} {kept.unit}"
        line = f"{kept.name}: {left_out} left out for more than {limit}"
        return BucketedBatches(text_buckets(kept, processor, line), self.examples.batch_tokens, self.training.seed)

    def examples_to_validate(self, predictor: Predictor, validation: Dataset[Any], console: Console) -> Sequence[Any]:
        """Without those that the model has no positions for; what the vocabulary lacks is told too."""
        examples = super().examples_to_validate(predictor, validation, console)
        if tokenizer := getattr(predictor.processor, "tokenizer", None):
            for note in unknown_note(validation.name, tokenizer, map(self.key, examples)):
                console.print(note, markup=False, highlight=False)
        positions = self.positions(predictor.processor, examples)
        return without_too_long(predictor.model, examples, positions, validation.name, console)

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.readers import look_at_text

        return look_at_text(predictor, given, max_length, sites, lambda text: self.model_inputs(predictor, text))


def longest_first(lengths: Sequence[int], budget: int = TOKENS_TOGETHER) -> Iterator[list[int]]:
    """The places of what is answered about together: longest first, so that what does not fit into memory shows at
    once. Rows times longest row stay within the budget; what is longer comes alone, and what has no length not at all.
    """
    counts = np.array(lengths, np.int64)
    order = np.argsort(-counts, kind="stable")
    for group in within_budget(order[counts[order] > 0], counts, budget):
        yield group.tolist()
