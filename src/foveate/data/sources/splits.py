"""The three parts of a source."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from foveate.data.splits import Side, sides

__all__ = ["Side", "Splits", "sides"]

Text = TypeVar("Text")
"""What a task reads: `ParallelText` to translate, and others."""


@dataclass(frozen=True)
class Splits(Generic[Text]):
    """Text to learn from, to validate on while learning, and to measure on in the end."""

    train: Text
    dev: Text
    test: Text
