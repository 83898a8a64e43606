"""What tasks of questions count in the answers to learn from."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from foveate.data.dataset import Dataset
from foveate.errors import UserError


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
