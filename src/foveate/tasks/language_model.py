"""A language model in use: it goes on from texts, and is measured by how well it foretells them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

from foveate.baselines.ngrams import Ngrams
from foveate.contracts import Batch
from foveate.data.dataset import Dataset
from foveate.data.ragged import within_budget
from foveate.data.text.documents import Passage
from foveate.data.text.prose_batches import encode_passages
from foveate.errors import one_line
from foveate.forms.checks import unseen_labels
from foveate.forms.language import ReadBeginning, split_passage
from foveate.forms.prose import COUNTED
from foveate.metrics.perplexity import Perplexity, Scored, byte_count, perplexity, scores, word_count
from foveate.metrics.resampling import Measured
from foveate.tasks.chatting import Chatting
from foveate.tasks.skill import Skill
from foveate.tasks.training_data import lost

ORDERS = {1: "unigram", 2: "bigram", 3: "trigram"}
"""The n-grams that a model is compared with."""

TOGETHER = 4096
"""Tokens that are measured together, padding included."""

Tell = Callable[[Tensor], Tensor]
"""Changes the conditions that a model is told."""


class LanguageModel(Chatting, Skill):
    """A model that goes on from texts."""

    @property
    def reads(self) -> ReadBeginning:
        """The form that is read."""
        found: ReadBeginning = self.processor.reads
        return found

    def measure(
        self, examples: Sequence[Passage], options: Any, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        """The perplexity per token, per word, and the bits per byte."""
        scored = self.scores(examples)
        rows = [(f"{perplexity([one]).per_token:.1f}", one.passage.place, one.passage.text) for one in scored]
        lines = [f"{value}\t{place}\t{one_line(text)}" for value, place, text in rows]
        return lines, _metrics(perplexity(scored))

    def measured(self, examples: Sequence[Passage], options: Any, console: Console | None = None) -> Measured:
        scored = self.scores(examples)
        return Measured(len(scored), lambda rows: _metrics(perplexity([scored[row] for row in rows])))

    def answerable(self, dataset: Dataset[Passage]) -> Dataset[Passage]:
        """With the passages that are cut, where they are."""
        found = super().answerable(dataset)
        if not self.truncate:
            return found
        return found.map(lambda passage: self.fit(passage).value)

    def scores(self, passages: Sequence[Passage], tell: Tell | None = None) -> list[Scored]:
        """How surprising each passage is to the model, which may be told other conditions."""
        return scores(self.model, passages, self.in_order(passages, TOGETHER), tell)

    def in_order(self, passages: Iterable[Passage], budget: int) -> Iterator[tuple[list[int], Batch]]:
        """All passages once, shortest first: batches to measure on, each with the places of its passages."""
        encoded = encode_passages(passages, self.reads.words, conditions=self.reads.numbers or {})
        lengths = np.array([len(one.tokens) for one in encoded], np.int64)
        for group in within_budget(np.argsort(lengths, kind="stable"), lengths, budget):
            places = group.tolist()
            yield places, self.processor.batch([split_passage(encoded[place]) for place in places], None)

    def baselines(self, examples: Sequence[Passage], options: Any) -> dict[str, dict[str, float]]:
        """N-grams counted in the training text; and the model where it is told no condition, or a wrong one."""
        found = {**self._otherwise(examples)}
        if not examples[0].messages and not lost(self, COUNTED):
            found |= self._ngrams(examples)
        return {name: _metrics(one) for name, one in found.items()}

    def notes(self, examples: Sequence[Passage]) -> list[str]:
        if examples[0].messages:
            return ["of what the assistant says, with the sign that ends each answer"]
        conditions, unknown = self.reads.conditions, self.reads.words.special.ids.get("unknown")
        notes = [f"passages of at most {self.reads.passage_words} words, each with its end"]
        if conditions:
            notes += unseen_labels("conditions", [passage.condition for passage in examples], conditions)
        if unknown is not None and (unknown_tokens := sum(row.count(unknown) for row in self._sequences(examples))):
            notes.append(f"{unknown_tokens:,} tokens are unknown, and foretold without their letters")
        why = lost(self, COUNTED)
        return [*notes, *([f"no n-grams to compare with: {why}"] if why else [])]

    def _otherwise(self, passages: Sequence[Passage]) -> dict[str, Perplexity]:
        """What the model makes of the passages if it is told no condition, or a wrong one drawn at random."""
        generator, kinds = torch.Generator().manual_seed(1), len(self.reads.conditions)
        if not kinds:
            return {}

        def wrong(condition: Tensor) -> Tensor:
            others = torch.randint(1, kinds, condition.shape, generator=generator).to(condition.device)
            return torch.where(condition > 0, (condition - 1 + others) % kinds + 1, 0)

        told: dict[str, Tell] = {"told no condition": torch.zeros_like, "told a wrong one": wrong}
        return {name: perplexity(self.scores(passages, tell)) for name, tell in told.items()}

    def _ngrams(self, passages: Sequence[Passage]) -> dict[str, Perplexity]:
        """The perplexity of n-grams that count the tokens of the training text."""
        known, asked = self._sequences(self.train_examples()), self._sequences(passages)
        counts, found = (word_count(passages), byte_count(passages)), {}
        tokenizer = self.reads.words
        for order, name in ORDERS.items():
            log_probs = Ngrams(known, order, len(tokenizer), tokenizer.special.start).log_probs(asked)
            found[name] = Perplexity(-float(log_probs.sum()), len(log_probs), *counts)
        return found

    def _sequences(self, passages: Iterable[Passage]) -> list[list[int]]:
        tokenizer = self.reads.words
        return [[*row, tokenizer.special.end] for row in tokenizer.encode([passage.text for passage in passages])]


def _metrics(found: Perplexity) -> dict[str, float]:
    return {
        "perplexity": found.per_token,
        "perplexity_per_word": found.per_word,
        "bits_per_byte": found.bits_per_byte,
    }
