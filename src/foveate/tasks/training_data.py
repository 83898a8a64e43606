"""What is left of the data that a model learned from."""

import math
from typing import Any

from foveate.errors import UserError


def lost(skill: Any, most: float = math.inf) -> str:
    """Why nothing can be compared with a model's training data; empty if it can, and has at most this many examples."""
    try:
        count = len(skill.train_examples())
    except UserError as error:
        return str(error)
    if count > most:
        return f"the training text has {count:,} passages, and at most {most:,} are counted"
    return ""
