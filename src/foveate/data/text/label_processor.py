"""Labelled texts become batches for a classifier."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from foveate.config import from_dict
from foveate.contracts import Batch, Tokenizer, label_batch
from foveate.data.dataset import Dataset
from foveate.data.processor import Processor
from foveate.data.ragged import Numbers, tokenised
from foveate.data.text.batches import surroundings, text_inputs
from foveate.data.text.labelled import LabelledText
from foveate.data.tokens.bert_tokenizer import load_text_tokenizer
from foveate.files import read_json

TOKENIZER, LABELS = "tokenizer.json", "labels.json"


@dataclass
class Labels:
    """What `labels.json` says."""

    counts: dict[str, int]
    """How often each label occurs in the training text; the classes of the model in their order."""


class LabelledTokens(NamedTuple):
    """A text as numbers, with what surrounds it, and the number of its label: a tenth of the memory of the text."""

    tokens: Numbers
    label: int
    line: int

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"line {self.line}"

    def content(self) -> bytes:
        """All that is learned from it."""
        return self.tokens.tobytes() + self.label.to_bytes(4, "little")


@dataclass
class TextLabelProcessor(Processor[LabelledTokens]):
    """Turns labelled texts into inputs `tokens` (B, T) and `lengths` (B,), and labels (B, 1)."""

    tokenizer: Tokenizer
    labels: dict[str, int]
    """How often each label occurs in training; the classes of the model in their order."""
    unit: str = "tokens"
    """What texts are cut into, for the user."""

    def encode(self, text: LabelledText, most: int) -> tuple[Dataset[LabelledTokens], int]:
        """The texts of at most so many tokens, and how many there were in all. The file is read once, in pieces."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        texts = ((example.text, (numbers[example.label], example.line)) for example in text)
        rows, known, read = tokenised(texts, self.tokenizer, *surroundings(self.tokenizer), most)
        fitting = zip(rows.take(np.arange(len(known))), known, strict=True)
        return Dataset(text.name, [LabelledTokens(tokens, *one) for tokens, one in fitting], "texts"), read

    def cost(self, prepared: LabelledTokens) -> int:
        return len(prepared.tokens)

    def batch(self, prepared: Sequence[LabelledTokens], generator: np.random.Generator | None) -> Batch:
        labels = torch.tensor([[one.label] for one in prepared])
        return label_batch(text_inputs([one.tokens for one in prepared], self.tokenizer.special), labels, "texts")

    def sizes(self) -> Mapping[str, int]:
        return {"vocabulary": len(self.tokenizer), "classes": len(self.labels)}

    @property
    def summary(self) -> str:
        return f"{len(self.tokenizer):,} {self.unit}, {len(self.labels)} labels"

    def files(self) -> dict[str, Callable[[Path], object]]:
        labels = json.dumps({"counts": self.labels}, ensure_ascii=False)
        return {TOKENIZER: self.tokenizer.save, LABELS: lambda path: path.write_text(labels, encoding="utf-8")}

    @classmethod
    def load(cls, folder: Path) -> "TextLabelProcessor":
        labels = from_dict(Labels, read_json(folder / LABELS), LABELS).counts
        return cls(load_text_tokenizer(folder / TOKENIZER), labels)
