"""What a model cannot read or tell apart: too many positions, and labels that it did not learn."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from rich.console import Console

from foveate.data.dataset import Dataset
from foveate.errors import UserError, quoted

Example = TypeVar("Example")


def check_position_count(given: str, taken: int, most: float) -> None:
    """Raise UserError for an input that takes more positions than the model has learned."""
    if taken > most:
        raise UserError(f"{quoted(given)} takes {taken:,} positions, but the model learned only {most:,}")


def within_positions(
    most: float, dataset: Dataset[Any], positions: Callable[[Any], int], truncate: bool = False
) -> Dataset[Any]:
    """The examples to measure on that take at most the `most` positions of a model; a note counts the others, which
    stay where they are cut.

    Raises UserError where there are only others, and they are left out.
    """
    if most == math.inf:
        return dataset
    fits = [positions(example) <= most for example in dataset]
    if all(fits):
        return dataset
    if truncate:
        note = f"{fits.count(False):,} of {len(fits):,} are cut to the {most:,} positions that the model has"
        return dataset.only(range(len(fits)), note)
    note = f"left out: {fits.count(False):,} of {len(fits):,} for more than {most:,} positions"
    if not any(fits):
        raise UserError(f"{dataset.name}: {note}")
    return dataset.only([number for number, fit in enumerate(fits) if fit], note)


def without_too_long(
    most: float, examples: Sequence[Example], positions: Callable[[Example], int], name: str, console: Console
) -> Sequence[Example]:
    """The examples to validate on that take at most `most` positions; a line tells how many others there are.

    Raises UserError where there are only others.
    """
    if most == math.inf:
        return examples
    fitting = [example for example in examples if positions(example) <= most]
    if left_out := len(examples) - len(fitting):
        message = f"{name}: {left_out:,} of {len(examples):,} left out of validation for more than {most:,} positions"
        if not fitting:
            raise UserError(message)
        console.print(message, markup=False, highlight=False)
    return fitting


def unseen_labels(kind: str, right: Sequence[str], known: Collection[str]) -> list[str]:
    """A note, where some of what is said of the examples of a text is nothing that a model could tell apart."""
    others = Counter(one for one in right if one not in known)
    if not others:
        return []
    named = ", ".join(name for name, _ in others.most_common(3)) + (", ..." if len(others) > 3 else "")
    return [f"{others.total():,} of {len(right):,} have {kind} that the model did not learn: {named}"]
