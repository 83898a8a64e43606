"""Passages become batches for a language model, which may be told what kind of text each is of."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from foveate.contracts import Batch, label_batch
from foveate.data.dataset import Dataset
from foveate.data.processor import Processor
from foveate.data.ragged import within_budget
from foveate.data.text.documents import Passage
from foveate.data.text.preferences import TOKENIZER
from foveate.data.text.prose_batches import PassageTokens, encode_passages, stream_passages, to_write
from foveate.data.text.token_shards import keep_rows, rows_key
from foveate.data.tokens.bert_tokenizer import load_text_tokenizer
from foveate.data.tokens.tokenizer_processor import TokenizerProcessor
from foveate.errors import UserError
from foveate.files import read_json

CONDITIONS = "conditions.json"


@dataclass
class LanguageProcessor(TokenizerProcessor, Processor[PassageTokens]):
    """Turns passages into inputs `tokens` (B, T), beginning with the start token, `lengths` (B,) and, with conditions,
    `condition` (B,); labels (B, T) are the tokens one place on, with the end token, then IGNORE."""

    conditions: list[str] = field(default_factory=list)

    @property
    def numbers(self) -> dict[str, int] | None:
        """The number of each condition, from 1; None for a model without conditions."""
        return {name: number for number, name in enumerate(self.conditions, 1)} if self.conditions else None

    def encode(self, passages: Iterable[Passage], most: float = math.inf) -> list[PassageTokens]:
        """The passages of at most so many tokens."""
        return encode_passages(passages, self.tokenizer, most, self.numbers or {})

    def keep(self, passages: Dataset[Passage], watched: Iterable[Passage], most: int) -> Dataset[PassageTokens]:
        """The passages of at most so many tokens, which are read from `watched`: of a large text in files of the cache,
        which a later training on the same text finds there."""
        key = rows_key(passages, self.tokenizer, most, self.numbers)
        rows = keep_rows(lambda: stream_passages(watched, self.tokenizer, most, self.numbers or {}), PassageTokens, key)
        return Dataset(passages.name, rows, passages.unit)

    def prepare(self, dataset: Dataset[PassageTokens]) -> Sequence[PassageTokens]:
        return dataset.examples

    def cost(self, prepared: PassageTokens) -> int:
        return len(prepared.tokens) - 1

    def batch(self, prepared: Sequence[PassageTokens], generator: np.random.Generator | None) -> Batch:
        written, labels = to_write([one.tokens for one in prepared], self.tokenizer.special)
        inputs = {"tokens": written["target"], "lengths": written["target_lengths"]}
        if self.conditions:
            inputs["condition"] = torch.tensor([one.condition for one in prepared])
        return label_batch(inputs, labels, "passages")

    def in_order(self, passages: Iterable[Passage], budget: int) -> Iterator[tuple[list[int], Batch]]:
        """All passages once, shortest first: batches to measure on, each with the places of its passages."""
        encoded = self.encode(passages)
        lengths = np.array([len(one.tokens) for one in encoded], np.int64)
        for group in within_budget(np.argsort(lengths, kind="stable"), lengths, budget):
            places = group.tolist()
            yield places, self.batch([encoded[place] for place in places], None)

    def sizes(self) -> Mapping[str, int]:
        return {**super().sizes(), "conditions": 1 + len(self.conditions)}

    @property
    def summary(self) -> str:
        kinds = f", {len(self.conditions)} conditions" if self.conditions else ""
        return f"{super().summary}{kinds}"

    def files(self) -> dict[str, Callable[[Path], object]]:
        text = json.dumps({"conditions": self.conditions}, ensure_ascii=False) + "\n"
        return {**super().files(), CONDITIONS: lambda path: path.write_text(text, encoding="utf-8")}

    @classmethod
    def load(cls, folder: Path) -> "LanguageProcessor":
        names = read_json(folder / CONDITIONS).get("conditions")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise UserError(f"{folder / CONDITIONS} is damaged: {names!r} stands where a list of names must be")
        return cls(load_text_tokenizer(folder / TOKENIZER), conditions=names)
