"""What a classifier of texts keeps: its tokenizer and its labels."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from foveate.config import from_dict
from foveate.contracts import Tokenizer
from foveate.data.bert_tokenizer import load_text_tokenizer
from foveate.data.processor import SavedProcessor
from foveate.files import read_json

TOKENIZER, LABELS = "tokenizer.json", "labels.json"


@dataclass
class Labels:
    """What `labels.json` says."""

    counts: dict[str, int]
    """How often each label occurs in the training text; the classes of the model in their order."""


@dataclass
class TextLabelProcessor(SavedProcessor):
    """Batches to learn from come from `foveate.data.LabelledBatches`."""

    tokenizer: Tokenizer
    labels: dict[str, int]
    """How often each label occurs in training; the classes of the model in their order."""
    unit: str = "tokens"
    """What texts are cut into, for the user."""

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
