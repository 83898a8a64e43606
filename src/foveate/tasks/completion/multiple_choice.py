"""Questions with choices, as the multiple-choice tasks of lm-evaluation-harness score them (Gao et al. 2021).

A choice's score is the log-probability of its text after the question and a space; `acc_norm` divides it by the number
of characters. Both texts are encoded together, and the tokens of the question by itself are taken off.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveate.data.dataset import without_empty
from foveate.data.text.files import read_lines
from foveate.errors import UserError
from foveate.files import parse_json
from foveate.tasks.completion.choices import AnswerRow, ChoiceScorer
from foveate.tasks.evaluation import Evaluation, answers_by_line

TEXTS, NUMBERS = ("query", "question"), ("gold", "label", "answer")
"""Names that the text and the number of the right choice have in files."""


@dataclass(frozen=True)
class ChoiceQuestion:
    """A text, what may follow it, and which of that is right."""

    text: str
    choices: tuple[str, ...]
    right: int


def read_questions(path: Path, lines: list[int | None]) -> list[ChoiceQuestion]:
    """The questions of a file with one JSON object on each line; the number of each is added to `lines`.

    Raises UserError for a line of another form.
    """
    found: list[ChoiceQuestion] = []
    rows = (row if row[1].strip() else None for row in enumerate(read_lines(path), 1))
    for number, line in without_empty(rows, lines):
        try:
            values = parse_json(line, f"{path}, line {number}")
            if not isinstance(values, dict):
                raise ValueError("this is not an object")
            found.append(_question(values))
        except (ValueError, LookupError) as error:
            wrong = f"no {error.args[0]}" if isinstance(error, LookupError) else error
            raise UserError(
                f'{path}, line {number}: a question is {{"query": text, "choices": [text, ...], "gold": number}}; '
                f"{wrong}"
            ) from None
    if not found:
        raise UserError(f"{path} has no questions")
    return found


def _question(values: dict[str, Any]) -> ChoiceQuestion:
    text, right = (_first(values, names) for names in (TEXTS, NUMBERS))
    choices = values["choices"]
    if not isinstance(text, str) or not text.strip():
        raise ValueError("the query is not a text, or empty")
    if not isinstance(choices, list) or len(choices) < 2 or not all(isinstance(one, str) and one for one in choices):
        raise ValueError("choices are two texts or more, none of them empty")
    if isinstance(right, bool) or not isinstance(right, int) or not 0 <= right < len(choices):
        raise ValueError(f"gold is {right!r}, but must be a number from 0 to {len(choices) - 1}")
    return ChoiceQuestion(text, tuple(choices), right)


def _first(values: dict[str, Any], names: Sequence[str]) -> Any:
    for name in names:
        if name in values:
            return values[name]
    raise LookupError(" or ".join(names))


def choice_scores(scorer: ChoiceScorer, questions: Sequence[ChoiceQuestion]) -> list[list[float]]:
    """The log-probability of each choice of each question, in nats."""
    rows = choice_rows(scorer, questions)
    scores = iter(scorer.log_probs([row for own in rows for row in own]))
    return [[next(scores) for _ in own] for own in rows]


def choice_rows(scorer: ChoiceScorer, questions: Sequence[ChoiceQuestion]) -> list[list[AnswerRow]]:
    """The tokens of each choice behind its question."""
    return [[_row(scorer, one.text, f" {choice}") for choice in one.choices] for one in questions]


def _row(scorer: ChoiceScorer, text: str, choice: str) -> AnswerRow:
    """The tokens of both; what is beyond the positions is cut off in front."""
    kept = text.rstrip()
    choice = text[len(kept) :] + choice
    before, both = scorer.tokenizer.encode([kept, kept + choice])
    answer = len(both) - len(before)
    most = scorer.model.config.max_length
    if not 0 < answer < most + 1:
        raise UserError(f"the choice '{choice.strip()[:40]}' has {answer:,} tokens after its question: too few or many")
    return AnswerRow(both[-most - 1 :], answer, len(both) > most + 1)


def multiple_choice(scorer: ChoiceScorer, path: Path) -> Evaluation:
    """How often the right choice has the highest score, and the highest by its length; beside chance."""
    lines = list[int | None]()
    questions = read_questions(path, lines)
    scores = choice_scores(scorer, questions)
    long = sum(any(row.cut for row in rows) for rows in choice_rows(scorer, questions))
    cut = [f"{long:,} of them take more positions than the model has: their beginnings are not read"] if long else []
    shares = {"acc": 0.0, "acc_norm": 0.0}
    answers = []
    for question, found in zip(questions, scores, strict=True):
        by_length = [score / len(choice) for score, choice in zip(found, question.choices, strict=True)]
        for name, ranked in (("acc", found), ("acc_norm", by_length)):
            shares[name] += (ranked.index(max(ranked)) == question.right) / len(questions)
        answers.append(json.dumps({"choice": found.index(max(found)), "scores": found}))
    chance = sum(1 / len(question.choices) for question in questions) / len(questions)
    ways = {"chance": {"acc": chance, "acc_norm": chance}, "this model": shares}
    return Evaluation(
        answers=answers_by_line(answers, lines),
        figures={"questions": len(questions), "ways": ways},
        headings=["answers by", "acc", "acc_norm"],
        rows=[[way, *(f"{100 * value:.1f}%" for value in values.values())] for way, values in ways.items()],
        notes=[f"{len(questions):,} questions, as multiple-choice tasks of lm-evaluation-harness", *cut],
    )
