"""What is left of the data that a model learned from."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foveate.data.dataset import Dataset
from foveate.errors import UserError
from foveate.tasks.run_config import check_unchanged
from foveate.tasks.task import open_examples
from foveate.tasks.upgrade import notes_files

VALIDATED = (
    "on the examples that validated: they chose the weights that were kept, so that all figures are a little high"
)
"""What is to be said of figures on what was held out of a user's files."""


def read_training(skill: Any) -> tuple[Dataset[Any], Dataset[Any]]:
    """What a skill was trained on, and what validated it.

    Raises UserError where that is not there any more, or where files of text have changed.
    """
    check_training_files(skill)
    return open_examples(skill.task, skill.recipe)


def check_training_files(skill: Any) -> None:
    """Raises UserError where files of text that a skill was trained on have changed: they are read bit by bit."""
    if skill.processor.reads.by_files and notes_files(skill.description):
        check_unchanged(skill.description)


def notes_of(skill: Any, data: Sequence[Path]) -> list[str]:
    """What is to be said of figures on this data, or, without any, on what the skill is measured on by default."""
    examples = skill.recipe.examples
    return [VALIDATED] if not data and examples.source is None and examples.data else []


def lost(skill: Any, most: float = math.inf) -> str:
    """Why nothing can be compared with a model's training data; empty if it can, and has at most this many examples."""
    try:
        count = len(skill.train_examples())
    except UserError as error:
        return str(error)
    if count > most:
        return f"the training text has {count:,} passages, and at most {most:,} are counted"
    return ""
