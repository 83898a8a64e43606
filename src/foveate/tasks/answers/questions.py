"""What tasks that answer questions have in common: their models decide between the frequent answers of training."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from foveate.data.dataset import Dataset
from foveate.errors import UserError, at_least
from foveate.forms.checks import unseen_labels
from foveate.metrics.classification import accuracy
from foveate.tasks.examples.data_options import check_vocabulary
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.former.task import Examples


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
    """The accuracy in percent, over all and for each kind of question."""
    metrics = {"accuracy": accuracy(answers, [one.answer for one in examples])}
    for kind in sorted({one.kind for one in examples if one.kind is not None}):
        chosen = [number for number, one in enumerate(examples) if one.kind == kind]
        metrics[kind] = accuracy([answers[n] for n in chosen], [examples[n].answer for n in chosen])
    return metrics
