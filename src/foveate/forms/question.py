"""Questions about images, and the answers that are learned: the most frequent ones.

    ImageWithText    an image with any text about it, such as a caption
    Question         an image with a question
    FrequentAnswer   what is written: one of the most frequent answers

B batch    I images    T tokens of a question    h, w height and width in pixels
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import PIL.Image
import torch
from torch import Tensor, nn

from foveate.contracts import IGNORE, Batch, Picture, count_labels
from foveate.data.dataset import Dataset, Prepared
from foveate.data.images.labelled import ENDINGS
from foveate.data.images.question_layouts import soft_accuracy
from foveate.data.images.questions import ImageQuestion
from foveate.data.ragged import padded
from foveate.data.splits import COPY, Ties
from foveate.data.table import IMAGE, QUESTION, Column
from foveate.data.tokens.tokenizers import TRAINERS, load_tokenizer
from foveate.errors import UserError, at_least
from foveate.files import is_file
from foveate.forms.checks import unseen_labels
from foveate.forms.form import Changes, Learned, MapRow, Naming
from foveate.forms.grids import GridFinder
from foveate.forms.image import SquareImage
from foveate.forms.inputs import open_image, require_file
from foveate.forms.label import Label, LabelAnswer
from foveate.forms.written import check_vocabulary, require_tokenizer
from foveate.metrics.attention_in_boxes import area, share_in_box
from foveate.metrics.classification import accuracy
from foveate.viewer.protocol import File, Input, InputKind

LOOKED_AT = 128
"""Questions whose attention is compared with the boxes of their answers, when a model is measured."""


class ImageText(NamedTuple):
    """An image and a text about it."""

    image: PIL.Image.Image
    text: str
    of_dataset: bool = False
    """Whether it is an example of a dataset, and not given by a user."""


class AskedPixels(NamedTuple):
    """The same as a model reads it."""

    pixels: np.ndarray
    """(C, h, w) in 8 bits."""
    question: list[int]
    """The tokens."""
    image: int | None = None
    """The number of the image, where several questions share it."""


class QuestionBatch(Batch):
    """Questions with the images that they are about: several questions may share one."""

    def select(self, chosen: slice) -> Batch:
        """Some of the questions, with all images."""
        inputs = {name: value if name == "pixels" else value[chosen] for name, value in self.inputs.items()}
        targets = {name: value[chosen] for name, value in self.targets.items()}
        return replace(self, inputs=inputs, targets=targets, weight=self.weight[chosen])


class TextAboutImage:
    """What forms of an image and a text about it have in common: both are given as "image<TAB>text", or as an image
    with texts after it. Comes before the form of the image among the bases of a class."""

    kind: ClassVar[InputKind] = "question"
    columns: ClassVar[tuple[Column, ...]] = (IMAGE, QUESTION)
    needs_text: ClassVar[bool] = True
    """Whether an image alone cannot be read."""
    missing: ClassVar[str] = 'no question: give an image and a question, such as photo.jpg "what is this?"'
    """What is wrong with an image without a text."""

    def expand(self, given: Sequence[str]) -> list[str]:
        """Each image with each text after it, as "image<TAB>text"; lines of a file have both. An image without a text
        stands alone, and cannot be read.

        What is named like an image is one, so that a missing file is not a text about the image before it.
        """
        found, image = [], ""
        for one in given:
            if "\t" in one:
                found.append(one)
                image = ""
            elif not image or is_file(Path(one)) or Path(one).suffix.lower() in ENDINGS:
                found.append(image := one)
            elif found[-1] == image:
                found[-1] = f"{image}\t{one}"
            else:
                found.append(f"{image}\t{one}")
        if self.needs_text and not any("\t" in one for one in found):
            raise UserError(self.missing)
        return found

    def open(self, given: str) -> Any:
        path, _, text = (part.strip() for part in given.partition("\t"))
        if self.needs_text and not text:
            raise UserError(self.missing)
        return ImageText(super().open(path), text)  # type: ignore[misc]

    def receive(self, given: Input, name: str) -> Any:
        file = require_file(given, name, "question")
        if not file.question.strip():
            raise UserError(self.missing)
        return ImageText(open_image(file, getattr(self, "pixel_range", None)), file.question.strip())

    def prefix(self, given: str) -> tuple[str, ...]:
        path, _, text = (part.strip() for part in given.partition("\t"))
        return (path, text) if text or self.needs_text else (path,)

    def title(self, given: Input) -> str:
        return f"{given.name}: {given.question.strip()}" if isinstance(given, File) else given

    def axis(self, value: Any, prepared: Any, grid: GridFinder) -> Naming:
        return super().axis(value.image, prepared, grid)  # type: ignore[misc]

    def draw(self, value: Any, rows: Sequence[MapRow], title: str, grid: GridFinder) -> Picture | None:
        return super().draw(value.image, rows, title, grid)  # type: ignore[misc]


@dataclass
class ImageWithText(TextAboutImage, SquareImage):
    """An image that fills a square, and a text about it."""


@dataclass
class Question(ImageWithText):
    """A question about an image: inputs `pixels` (I, C, h, w), `images` (B,), the row of each question's image in
    `pixels`, `tokens` (B, T) and `lengths` (B,)."""

    saved_apart: ClassVar[Mapping[str, str]] = {"tokenizer": "tokenizer.json"}

    vocabulary: int = 10_000
    """How many words to learn, at most."""
    tokenizer: Learned[Any] = None
    """What cuts questions into words."""

    def check(self) -> None:
        super().check()
        check_vocabulary(self.vocabulary)

    def check_learned(self) -> None:
        super().check_learned()
        require_tokenizer(self, "tokenizer")

    @classmethod
    def load_part(cls, name: str, path: Path) -> Any:
        return load_tokenizer(path)

    def learn(self, train: Dataset[Any], architecture: Any) -> "Question":
        found: Any = super().learn(train, architecture)
        found.tokenizer = TRAINERS["words"]((one.question for one in train), self.vocabulary, True)
        return found

    def sizes(self) -> dict[str, int]:
        return {"vocabulary": len(self.tokenizer), **super().sizes()}

    def open(self, given: str) -> Any:
        path, question = self.prefix(given)
        if not question:
            raise UserError(f"no question about {path}")
        return super().open(given)

    def receive(self, given: Input, name: str) -> Any:
        if not require_file(given, name, "question").question.strip():
            raise UserError("no question is asked about the image")
        return super().receive(given, name)

    def value(self, example: ImageQuestion) -> Any:
        return ImageText(example.read(), example.question, of_dataset=True)

    def place(self, example: ImageQuestion) -> str:
        return f"{example.image}\t{example.question}"

    def group(self, example: ImageQuestion) -> tuple[Hashable, str]:
        image = example.image if example.composed else super().group(example)
        return image, example.question.casefold()

    def ties(self, example: ImageQuestion) -> Ties:
        """The image too: all questions about one are on the same side."""
        ties: Any = super().ties(example)
        return {**ties, "image": ties[COPY][0]}

    def prepare(self, value: Any) -> Any:
        return AskedPixels(super().prepare(value.image), self.tokens([value.text])[0])

    def prepare_all(self, dataset: Dataset[Any]) -> Prepared:
        """Each image is decoded once, whatever is asked about it."""
        first = {one.image: one for one in reversed(list(dataset))}
        images = super().prepare_all(Dataset(dataset.name, list(first.values()), "images"))
        keys = [*first]
        rows = {keys[example]: row for row, example in enumerate(images.examples)}
        kept = [number for number, one in enumerate(dataset) if one.image in rows]
        asked = [dataset[number] for number in kept]
        tokens = self.tokens([one.question for one in asked])
        values = [
            AskedPixels(images[rows[one.image]], own, rows[one.image]) for one, own in zip(asked, tokens, strict=True)
        ]
        return Prepared(values, kept, images.report)

    def tokens(self, questions: Sequence[str]) -> list[list[int]]:
        """The tokens of each question; one unknown token for an empty one."""
        return [found or [self.tokenizer.special.unknown] for found in self.tokenizer.encode(list(questions))]

    def batch_group(self, prepared: AskedPixels) -> int:
        return prepared.image or 0

    def batch(self, inputs: dict[str, Tensor], targets: dict[str, Tensor], weight: Tensor) -> Batch:
        return QuestionBatch(inputs, targets, weight, "questions")

    def places(self, prepared: Any) -> int:
        return super().places(prepared.pixels)

    def tensors(
        self, prepared: Sequence[Any], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        pixels: Any
        pixels, questions, numbers = zip(*prepared, strict=True)
        inputs: dict[str, Tensor] = {}
        if None not in numbers:
            _, first, images = np.unique(numbers, return_index=True, return_inverse=True)
            pixels, inputs = [pixels[place] for place in first], {"images": torch.from_numpy(images)}
        inputs |= super().tensors(pixels, generator)[0]
        tokens, lengths = padded([np.array(one) for one in questions], self.tokenizer.special.pad)
        return {**inputs, "tokens": tokens, "lengths": lengths}, Changes()

    def usable(self, dataset: Dataset[Any]) -> Dataset[Any]:
        return dataset if all(one.composed for one in dataset) else super().usable(dataset)

    def axis(self, value: Any, prepared: Any, grid: GridFinder) -> Naming:
        """The question, or the places of the image."""
        places = super().axis(value, prepared, grid)
        return lambda count: [value.text] if count == 1 else places(count)

    def draw(self, value: Any, rows: Sequence[MapRow], title: str, grid: GridFinder) -> Picture | None:
        """The image once for each glimpse at it."""
        return super().draw(value, rows, f"{value.text}  {title}", grid)


@dataclass
class FrequentAnswer(Label):
    """One of the most frequent answers of training; a question with another answer has no label."""

    rare_kinds: ClassVar[bool] = True
    metric: ClassVar[str] = "accuracy"

    several: Learned[bool] = field(default=False, kw_only=True)
    answers: int = 1_000
    """How many answers to learn, at most: the most frequent ones. Questions with another answer are left out."""

    def check(self) -> None:
        at_least(2, "answers", self.answers)

    def learn(self, train: Dataset[Any], reads: Any, architecture: Any) -> "FrequentAnswer":
        found = copy(self)
        found.labels = frequent_answers(train, self.answers)
        return found

    def extend(self, trained: Any, train: Dataset[Any]) -> "FrequentAnswer":
        """With new answers behind the known ones."""
        found: FrequentAnswer = trained.with_settings(self)
        found.labels = dict.fromkeys(trained.labels, 0) | frequent_answers(train, self.answers)
        return found

    def labels_of(self, example: Any) -> tuple[str, ...]:
        return (example.answer,)

    def check_examples(self, train: Dataset[Any], validation: Dataset[Any], example: str) -> None:
        """Answers may be rare, and new ones too."""

    def prepare(self, example: Any) -> list[tuple[int, ...]]:
        return [(self._numbers.get(example.answer, IGNORE),)]

    def tensors(
        self, prepared: Sequence[tuple[int, ...]], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        labels = torch.tensor(prepared)
        return {}, self.targets(labels), count_labels(labels)

    def metrics(self, answers: Sequence[LabelAnswer], examples: Sequence[Any]) -> dict[str, float]:
        return answer_metrics([one.label for one in answers], examples)

    def look_metrics(
        self, answers: Sequence[Any], examples: Sequence[Any], maps: Callable[[Any, Any], Sequence[Tensor]]
    ) -> dict[str, float]:
        """The share of the attention that is where the answer can be seen, beside that of uniform attention."""
        boxed = [(one, answer) for one, answer in zip(examples, answers, strict=True) if getattr(one, "box", None)]
        boxed = boxed[:LOOKED_AT]
        found = [maps(one, answer) for one, answer in boxed]
        if not found or not all(found):
            return {}
        inside = [
            share_in_box(torch.stack([*own]).mean(0), one.box) for own, (one, _) in zip(found, boxed, strict=True)
        ]
        uniform = [area(one.box) for one, _ in boxed]
        return {"attention_in_box": 100 * float(np.mean(inside)), "uniform_in_box": 100 * float(np.mean(uniform))}

    def baselines(
        self, reads: Any, examples: Sequence[Any], train: Callable[[], Dataset[Any]]
    ) -> dict[str, dict[str, float]]:
        """The most frequent answer of all, and the most frequent one to the same question in training."""
        by_question = answers_by_question(train())
        frequent = max(self.labels, key=self.labels.__getitem__)
        blind = [
            by_question[one.question].most_common(1)[0][0] if one.question in by_question else frequent
            for one in examples
        ]
        return {
            "the most frequent answer": answer_metrics([frequent] * len(examples), examples),
            "the question alone": answer_metrics(blind, examples),
        }

    def notes(self, examples: Sequence[Any]) -> list[str]:
        return unseen_labels("answers", [one.answer for one in examples], self.labels)

    def rows(self, sight: Any, model: nn.Module, answer: LabelAnswer, before: int) -> list[MapRow]:
        """Where the model looked in each glimpse."""
        glimpses = [weights for site in sight.sites for weights in sight[site].weights()[0, :, 0].float().cpu()]
        return [MapRow(f"glimpse {number}", weights) for number, weights in enumerate(glimpses, 1)]


def frequent_answers(questions: Dataset[Any], most: int) -> dict[str, int]:
    """The `most` frequent answers in alphabetical order, each with how often it occurs.

    Raises UserError where all questions have the same answer.
    """
    found = Counter(one.answer for one in questions).most_common(most)
    if len(found) < 2:
        raise UserError(f"{questions.name}: all questions have the same answer")
    return dict(sorted(found))


def answers_by_question(questions: Iterable[Any]) -> dict[str, Counter[str]]:
    """How often each answer was given to a question of the same words."""
    found: dict[str, Counter[str]] = {}
    for one in questions:
        found.setdefault(one.question, Counter())[one.answer] += 1
    return found


def answer_metrics(answers: Sequence[str], examples: Sequence[Any]) -> dict[str, float]:
    """The accuracy in percent, over all and for each kind of question; VQA's where several people answered."""
    metrics = {"accuracy": accuracy(answers, [one.answer for one in examples])}
    asked = zip(answers, examples, strict=True)
    several = [(answer, one.answers) for answer, one in asked if isinstance(one, ImageQuestion) and one.answers]
    if several:
        metrics["vqa_accuracy"] = sum(soft_accuracy(*one) for one in several) / len(several)
    for kind in sorted({one.kind for one in examples if one.kind is not None}):
        chosen = [number for number, one in enumerate(examples) if one.kind == kind]
        metrics[kind] = accuracy([answers[n] for n in chosen], [examples[n].answer for n in chosen])
    return metrics
