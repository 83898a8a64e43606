"""Questions about images become tensors: pixels, the tokens of the question, the number of the answer."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor

from foveate.config import from_dict
from foveate.contracts import IGNORE, Batch, count_labels
from foveate.data.dataset import Dataset
from foveate.data.images.decoded import decode
from foveate.data.images.labelled import ImageFormat
from foveate.data.images.processor import normalize
from foveate.data.images.questions import ImageQuestion
from foveate.data.processor import PROCESSOR, Processor
from foveate.data.ragged import padded
from foveate.data.tokens.tokenizers import SubwordTokenizer, load_tokenizer
from foveate.files import read_json

TOKENIZER = "tokenizer.json"

Prepared = tuple[np.ndarray, int, list[int], int]
"""An image (C, h, w) in 8 bits and its number, the tokens of a question about it, and the number of the answer."""


class QuestionBatch(Batch):
    """Questions with the images that they are about: several questions may share one."""

    def select(self, chosen: slice) -> Batch:
        """Some of the questions, with all images."""
        inputs = {name: value if name == "pixels" else value[chosen] for name, value in self.inputs.items()}
        targets = {name: value[chosen] for name, value in self.targets.items()}
        return replace(self, inputs=inputs, targets=targets, weight=self.weight[chosen])


@dataclass(frozen=True)
class PreparedQuestions(Sequence[Prepared]):
    """Images, each decoded once, with all questions about it."""

    pixels: np.ndarray
    images: list[int]
    """The number of each question's image."""
    questions: list[list[int]]
    answers: list[int]

    def __len__(self) -> int:
        return len(self.questions)

    def __getitem__(self, number: Any) -> Any:
        image = self.images[number]
        return self.pixels[image], image, self.questions[number], self.answers[number]


@dataclass
class QuestionProcessor(Processor[ImageQuestion]):
    """Turns questions into inputs `pixels` (I, C, h, w), `images` (B,), the row of each question's image in `pixels`,
    `tokens` (B, T), `lengths` (B,), and labels (B, 1)."""

    format: ImageFormat
    tokenizer: SubwordTokenizer
    answers: dict[str, int]
    """How often each answer occurs in training; the classes of the model in their order."""

    def prepare(self, dataset: Dataset[ImageQuestion]) -> PreparedQuestions:
        first = {one.image: one for one in reversed(list(dataset))}
        numbers = {image: number for number, image in enumerate(first)}
        classes = {answer: number for number, answer in enumerate(self.answers)}
        pixels = decode(Dataset(dataset.name, list(first.values()), "images"), self.format)
        images = [numbers[one.image] for one in dataset]
        answers = [classes.get(one.answer, IGNORE) for one in dataset]
        return PreparedQuestions(pixels, images, self.tokens([one.question for one in dataset]), answers)

    def group(self, prepared: Prepared) -> int:
        """The image: questions about it come together, so that a model reads it once for all of them."""
        return prepared[1]

    def batch(self, prepared: Sequence[Prepared], generator: np.random.Generator | None) -> QuestionBatch:
        pixels, numbers, questions, answers = zip(*prepared, strict=True)
        _, first, images = np.unique(numbers, return_index=True, return_inverse=True)
        inputs = {
            "pixels": normalize(np.stack([pixels[place] for place in first])),
            "images": torch.from_numpy(images),
            **self.ask(questions),
        }
        labels = torch.tensor(answers)[:, None]
        return QuestionBatch(inputs, {"labels": labels}, count_labels(labels), "questions")

    def tokens(self, questions: Sequence[str]) -> list[list[int]]:
        """The tokens of each question; one unknown token for an empty one."""
        return [found or [self.tokenizer.special.unknown] for found in self.tokenizer.encode(questions)]

    def ask(self, tokens: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """Questions as a model reads them."""
        table, lengths = padded([np.array(one) for one in tokens], self.tokenizer.special.pad)
        return {"tokens": table, "lengths": lengths}

    def pixels(self, images: Sequence[PIL.Image.Image]) -> Tensor:
        """Images as a model reads them, (B, C, h, w)."""
        return normalize(np.stack([self.format.pixels(image) for image in images]))

    def sizes(self) -> dict[str, int]:
        return {
            "vocabulary": len(self.tokenizer),
            "classes": len(self.answers),
            "channels": self.format.channels,
            "image_size": self.format.size,
        }

    def files(self) -> dict[str, Callable[[Path], object]]:
        text = json.dumps({"format": asdict(self.format), "answers": self.answers}, ensure_ascii=False)
        return {TOKENIZER: self.tokenizer.save, PROCESSOR: lambda path: path.write_text(text, encoding="utf-8")}

    @classmethod
    def load(cls, folder: Path) -> "QuestionProcessor":
        saved = from_dict(_Saved, read_json(folder / PROCESSOR), str(folder / PROCESSOR))
        return cls(saved.format, load_tokenizer(folder / TOKENIZER), saved.answers)


@dataclass
class _Saved:
    format: ImageFormat
    answers: dict[str, int]
