"""Answers to questions about images."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from foveate.data import TRAINERS
from foveate.data.dataset import Dataset
from foveate.data.images.decoding import read_image
from foveate.data.images.labelled import ENDINGS, ImageFormat
from foveate.data.images.processor import choose_format
from foveate.data.images.question_processor import QuestionProcessor
from foveate.data.images.questions import ImageQuestion, image_questions
from foveate.errors import UserError, at_least, one_line
from foveate.files import is_file
from foveate.forms.image_files import read_or_report
from foveate.forms.label import choose_label
from foveate.tasks.answers.image_answers import BATCH, answer_probabilities, glimpse_maps
from foveate.tasks.answers.questions import (
    DecidesAnswers,
    QuestionExamples,
    answer_metrics,
    answers_by_question,
    frequent_answers,
)
from foveate.tasks.answers.word_maps import area, share_in_box
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Task
from foveate.tasks.protocols import NoOptions
from foveate.tasks.start.parts import FromImageEncoder, ImageEncoder
from foveate.viewer.figures import plot_word_strip
from foveate.viewer.protocol import Input, LookResult

SHOWN = 256
"""Height and width of the images in a picture, in pixels."""


@dataclass
class Questions(QuestionExamples):
    """Which questions to learn from, a table with image<TAB>question<TAB>answer on each line, and what becomes of
    them."""

    batch: int = 128
    """Questions of a batch; those about one image are in the same batch."""
    size: int | None = None
    """Height and width that images are scaled to. By default their own, if all are square, equal and at most 256, else
    64."""

    def check(self) -> None:
        super().check()
        if self.size is not None:
            at_least(1, "size", self.size)


@dataclass
class Answer:
    """The answer to a question about an image."""

    place: str
    """The file of the image."""
    question: str
    text: str
    """The most probable answer; empty for a file that could not be read."""
    probability: float
    probabilities: dict[str, float] = dataclass_field(default_factory=dict)

    @property
    def line(self) -> str:
        """The file, the question, the answer and its probability, with tabs between them."""
        parts = map(one_line, (self.place, self.question, self.text))
        return "\t".join([*parts, f"{self.probability:.3f}"]) if self.text else ""


@dataclass
class AnswerTask(DecidesAnswers, Task[Architecture]):
    """Train a model that answers questions about images.

    `foveate run RUN photo.jpg "what is left of the apple?"` then answers; an image may have several questions.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "answer"
    unit = "questions"
    files = "TABLE"
    takes = "question"
    processor = QuestionProcessor
    start_parts = ImageEncoder()
    default_training = Training(
        usual_epochs=10,
        learning_rate=3e-3,
        schedule="cosine",
        usual_warmup=50,
        optimizer="muon",
        label_smoothing=0.0,
        validate_every=300,
        save_every=300,
    )

    examples: Annotated[Questions, tyro.conf.arg(name="")] = dataclass_field(default_factory=Questions)
    model: str = "show-ask-stacked-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/answer")
    """Folder for the trained model; a training that it holds is resumed."""
    start: FromImageEncoder = None

    def read(self, paths: Sequence[Path]) -> Dataset[ImageQuestion]:
        return image_questions(paths)

    def fit(self, train: Dataset[ImageQuestion]) -> QuestionProcessor:
        chosen = self.examples
        answers = frequent_answers(train, chosen.answers)
        tokenizer = TRAINERS["words"]((one.question for one in train), chosen.vocabulary, True)
        alike = [train[0]] if train[0].composed else train  # composed images are alike: one tells of all
        return QuestionProcessor(choose_format(alike, chosen.size), tokenizer, answers)

    def expand(self, places: Sequence[str]) -> list[str]:
        """Each image with each question after it, as "image<TAB>question"; lines of a file have both.

        What is named like an image is one, so that a missing file is no question about the image before it.
        """
        found, image = [], ""
        for place in places:
            if "\t" in place:
                found.append(place)
            elif not image or is_file(Path(place)) or Path(place).suffix.lower() in ENDINGS:
                image = place
            else:
                found.append(f"{image}\t{place}")
        if not found:
            raise UserError('no question: give an image and a question, such as photo.jpg "what is this?"')
        return found

    def answer(self, predictor: Predictor, texts: Sequence[str], options: NoOptions) -> list[Answer]:
        """The answer to each "image<TAB>question"; an image that cannot be read, or without a question, is reported and
        gets none."""
        asked = [(place.strip(), question.strip()) for place, _, question in (text.partition("\t") for text in texts)]
        images = {place: read_or_report(place) for place in dict.fromkeys(place for place, _ in asked)}
        for place in (place for place, question in asked if not question):
            print(f"no question about {place}", file=sys.stderr)
        readable = [(image, question) for place, question in asked if question and (image := images[place]) is not None]
        shares = iter(
            answer_probabilities(predictor, [image for image, _ in readable], [question for _, question in readable])
        )
        return [
            Answer(place, question, "", 0.0)
            if images[place] is None or not question
            else Answer(place, question, *choose_label(predictor.processor.answers, next(shares)))
            for place, question in asked
        ]

    def measure(self, predictor: Predictor, examples: Sequence[ImageQuestion], options: NoOptions) -> Measured:
        """The share of right answers, by kind of question where it is known, and the share of the attention that is
        where the answer can be seen, beside that of uniform attention."""
        shares = answer_probabilities(predictor, [one.read() for one in examples], [one.question for one in examples])
        answers = [choose_label(predictor.processor.answers, one)[0] for one in shares]
        metrics = answer_metrics(answers, examples)
        boxed = [one for one in examples if one.box is not None][:BATCH]
        maps = (
            glimpse_maps(predictor, [one.read() for one in boxed], [one.question for one in boxed]) if boxed else None
        )
        if maps is not None:
            inside = [share_in_box(one.mean(0), example.box) for one, example in zip(maps, boxed, strict=True)]  # type: ignore[arg-type]
            metrics["attention_in_box"] = 100 * float(np.mean(inside))
            metrics["uniform_in_box"] = 100 * float(np.mean([area(one.box) for one in boxed]))  # type: ignore[arg-type]
        return Measured(answers, metrics)

    def baselines(
        self, predictor: Predictor, examples: Sequence[ImageQuestion], options: NoOptions
    ) -> dict[str, dict[str, float]]:
        """The most frequent answer of all, and the most frequent one to the same question in training."""
        by_question = answers_by_question(self.open()[0])
        frequent = max(predictor.processor.answers, key=predictor.processor.answers.__getitem__)
        blind = [
            by_question[one.question].most_common(1)[0][0] if one.question in by_question else frequent
            for one in examples
        ]
        return {
            "the most frequent answer": answer_metrics([frequent] * len(examples), examples),
            "the question alone": answer_metrics(blind, examples),
        }

    def picture(self, predictor: Predictor, prediction: Answer) -> Any:
        """The image once for each glimpse, sharp and bright where the model looked."""
        image = read_image(Path(prediction.place))
        maps = glimpse_maps(predictor, [image], [prediction.question])
        if maps is None:
            return None
        shown = ImageFormat(SHOWN, predictor.processor.format.channels).pixels(image).transpose(1, 2, 0)
        names = [f"glimpse {number + 1}" for number in range(len(maps[0]))]
        return plot_word_strip(shown, names, maps[0], f"{prediction.question}  {prediction.text}")

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.answers import look_at_answer

        return look_at_answer(predictor, given, max_length, sites)
