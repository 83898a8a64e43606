"""Trained models that judge what other models make."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foveate import tasks
from foveate.errors import UserError
from foveate.tasks.skill import Skill


def load_judge(folder: Path, task: str, flag: str) -> Any:
    """The model of a run of `task`, which `flag` named. Raises UserError for another model."""
    judge = tasks.load(folder)
    name = judge.task.name if isinstance(judge, Skill) else getattr(getattr(judge, "task", None), "task", None)
    if name != task:
        raise UserError(f"{folder} cannot judge; {flag} takes a run of {task}")
    return judge


def recognised(folder: Path, task: str, made: Sequence[Any], labels: Sequence[str]) -> float:
    """The share of images or sounds that were made, in percent, that a classifier gives the labels asked for.

    `task` is what the classifier was trained for. Raises UserError for another model, and for a label that it does not
    know.
    """
    judge = load_judge(folder, task, "--judge")
    forms = judge.processor
    if unknown := sorted(set(labels) - set(forms.writes.labels)):
        raise UserError(f"{folder} does not know the label '{unknown[0]}'")
    decisions = judge.answer_prepared([forms.reads.prepare(one) for one in made], forms.writes.run_options())
    return 100 * sum(one.label == label for one, label in zip(decisions, labels, strict=True)) / len(labels)
