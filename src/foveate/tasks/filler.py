"""A model in use that fills in words: it is measured by how well it foretells hidden ones."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from rich.console import Console

from foveate.baselines.ngrams import Ngrams
from foveate.data.buckets import BucketedBatches, OneBucket
from foveate.data.dataset import Dataset
from foveate.data.text.documents import Passage
from foveate.data.text.packing import TokenRow, pack, rows_of_each
from foveate.forms.blanks import ReadBlanks
from foveate.forms.prose import COUNTED
from foveate.tasks.skill import Skill
from foveate.tasks.training_data import lost

ORDERS = {1: "unigram", 3: "trigram"}
"""The n-grams that a model is compared with; they see the tokens before a hidden one, and none after it."""

MOST_TOKENS = 8192
"""Tokens that are read together when a model is measured."""


class Filler(Skill):
    """A model that fills in words."""

    @property
    def reads(self) -> ReadBlanks:
        """The form that is read."""
        found: ReadBlanks = self.processor.reads
        return found

    def examples_to_validate(self, validation: Dataset[Passage], console: Console) -> Sequence[Passage]:
        """Passages of any length: those that are longer than a row make several."""
        return validation.some(self.recipe.examples.validation_examples)

    def answerable(self, dataset: Dataset[Passage]) -> Dataset[Passage]:
        return dataset

    def measure(
        self, examples: Sequence[Passage], options: Any, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        """The perplexity of the hidden tokens of each passage, and the share that is predicted right."""
        rows = self._rows(examples)
        objective, nats, right, labels = self.objective(), 0.0, 0.0, 0
        for batch in BucketedBatches(OneBucket(rows, self.reads.rows_of_tokens), MOST_TOKENS, 0).in_order():
            loss = objective(self.forward(batch.inputs), batch.to(self.device))
            nats += float(loss.total)
            right += float(loss.log["accuracy"])
            labels += batch.total_weight
        metrics = {"perplexity": _perplexity(nats, labels), "accuracy": 100 * right / max(1, labels)}
        return [row.place for row in rows], metrics

    def baselines(self, examples: Sequence[Passage], options: Any) -> dict[str, dict[str, float]]:
        """The perplexity of the same hidden tokens after those before them, counted in the training text."""
        if self._changed():
            return {}
        tokenizer, length = self.reads.words, self.reads.max_length
        known = [row.tokens[1:].tolist() for row in pack(self.train_examples(), tokenizer, length)]
        rows = self._rows(examples)
        asked = [row.tokens[1:].tolist() for row in rows]
        places = [self.reads.rows_of_tokens.way.predicted(row.tokens) - 1 for row in rows]
        found = {}
        for order, name in ORDERS.items():
            nats = iter(-Ngrams(known, order, len(tokenizer), tokenizer.special.start).log_probs(asked))
            each = [torch.tensor([next(nats) for _ in row])[at] for row, at in zip(asked, places, strict=True)]
            found[name] = {"perplexity": _perplexity(float(torch.cat(each).sum()), sum(map(len, each)))}
        return found

    def notes(self, examples: Sequence[Passage]) -> list[str]:
        why = self._changed()
        return [f"no n-grams to compare with: {why}" if why else "n-grams see only the tokens before"]

    def _rows(self, passages: Sequence[Passage]) -> Dataset[TokenRow]:
        """Each passage by itself."""
        rows = rows_of_each(passages, self.reads.words, self.reads.max_length)
        return Dataset("passages", list(rows), "rows")

    def _changed(self) -> str:
        """Why the training text cannot be counted; empty if it can."""
        if self.recipe.examples.data and not self.description.get("contents"):
            return "the training text is not there any more as it was"
        return lost(self, COUNTED)


def _perplexity(nats: float, tokens: int) -> float:
    return math.exp(min(700.0, nats / max(1, tokens)))
