"""Questions about texts become tensors: the words of both, the number of the answer."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from foveate.config import from_dict
from foveate.contracts import IGNORE, Batch, label_batch
from foveate.data.dataset import Dataset
from foveate.data.processor import PROCESSOR, Processor
from foveate.data.ragged import padded
from foveate.data.text.facts import TextQuestion
from foveate.data.tokens.tokenizers import load_tokenizer
from foveate.files import read_json

TOKENIZER = "tokenizer.json"

Prepared = tuple[list[int], list[int], int]
"""The tokens of a text and of a question, and the number of the answer."""


@dataclass
class TextQuestionProcessor(Processor[TextQuestion]):
    """Turns questions into inputs `source`, `source_lengths` (texts), `target`, `target_lengths` and labels (B, 1)."""

    tokenizer: Any
    answers: dict[str, int]
    """How often each answer occurs in training; the classes of the model in their order."""

    def prepare(self, dataset: Dataset[TextQuestion]) -> Sequence[Prepared]:
        classes = {answer: number for number, answer in enumerate(self.answers)}
        texts = self.tokens([one.text for one in dataset])
        questions = self.tokens([one.question for one in dataset])
        answers = [classes.get(one.answer, IGNORE) for one in dataset]
        return list(zip(texts, questions, answers, strict=True))

    def batch(self, prepared: Sequence[Prepared], generator: np.random.Generator | None) -> Batch:
        texts, questions, answers = zip(*prepared, strict=True)
        return label_batch(self.ask(texts, questions), torch.tensor(answers)[:, None], "questions")

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text; one unknown token for an empty one."""
        return [found or [self.tokenizer.special.unknown] for found in self.tokenizer.encode(texts)]

    def ask(self, texts: Sequence[Sequence[int]], questions: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """Texts and questions as a model reads them."""
        pad = self.tokenizer.special.pad
        source, source_lengths = padded([np.array(one) for one in texts], pad)
        target, target_lengths = padded([np.array(one) for one in questions], pad)
        return {
            "source": source,
            "source_lengths": source_lengths,
            "target": target,
            "target_lengths": target_lengths,
        }

    def sizes(self) -> dict[str, int]:
        return {"vocabulary": len(self.tokenizer), "classes": len(self.answers)}

    def files(self) -> dict[str, Callable[[Path], object]]:
        text = json.dumps({"answers": self.answers}, ensure_ascii=False)
        return {TOKENIZER: self.tokenizer.save, PROCESSOR: lambda path: path.write_text(text, encoding="utf-8")}

    @classmethod
    def load(cls, folder: Path) -> "TextQuestionProcessor":
        saved = from_dict(_Saved, read_json(folder / PROCESSOR), str(folder / PROCESSOR))
        return cls(load_tokenizer(folder / TOKENIZER), saved.answers)


@dataclass
class _Saved:
    answers: dict[str, int]
