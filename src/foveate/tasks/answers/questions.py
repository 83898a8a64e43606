"""What tasks that answer questions have in common: their models decide between the frequent answers of training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foveate.errors import at_least
from foveate.forms.checks import unseen_labels
from foveate.forms.question import answer_metrics, answers_by_question, frequent_answers
from foveate.tasks.examples.data_options import check_vocabulary
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.former.task import Examples

__all__ = ["DecidesAnswers", "QuestionExamples", "answer_metrics", "answers_by_question", "frequent_answers"]


@dataclass
class QuestionExamples(Examples):
    """Which questions to learn from, and what becomes of them."""

    batch: int = 64
    """Questions of a batch."""
    validation_examples: int = 1000
    """Questions that each validation during training answers."""
    vocabulary: int = 10_000
    """How many words to learn, at most."""
    answers: int = 1_000
    """How many answers to learn, at most: the most frequent ones. Questions with another answer are left out."""

    def check(self) -> None:
        super().check()
        check_vocabulary(self.vocabulary)
        at_least(2, "answers", self.answers)


class DecidesAnswers:
    """What tasks of questions say of the examples to measure on."""

    def notes(self, predictor: Predictor, examples: Sequence[Any]) -> list[str]:
        return unseen_labels("answers", [one.answer for one in examples], predictor.processor.answers)
