"""Texts that take more positions than a model has, and are cut."""

import math
from typing import Any, ClassVar, NamedTuple

from torch import nn

from foveate.errors import UserError
from foveate.nn import longest_sequence


class FittedText(NamedTuple):
    """A value that fits a model."""

    value: Any
    prepared: Any
    cut: bool
    """Whether there was more of it."""


class CutText:
    """What forms share that read texts: a value is cut to the positions of a model.

    A value is a text, or a tuple of texts that are cut to the same number of characters. A form with other values
    overrides `size` and `part`.
    """

    goes_on: ClassVar[bool] = False
    """Whether the model goes on from a text, so that its end is kept."""

    def limit(self, model: nn.Module) -> float:
        """The positions that a model has for a value; infinite where it reads any number."""
        return longest_sequence(model)

    def size(self, value: Any) -> int:
        """The parts of a value that can be cut off: the characters of its longest text."""
        return max(map(len, value)) if isinstance(value, tuple) else len(value)

    def fewest(self, value: Any) -> int:
        """The parts that have to stay."""
        return 1

    def part(self, value: Any, count: int) -> Any:
        """The first parts of a value, or its last ones where the model goes on from them."""
        if isinstance(value, tuple):
            return tuple(self.part(text, count) for text in value)
        return value[-count:] if self.goes_on else value[:count]

    def shortened(self, value: Any, most: float) -> Any:
        """As much of a value as takes at most `most` positions. Raises UserError where that is too little."""
        fewest, whole = self.fewest(value), self.size(value)
        low, high = fewest - 1, max(fewest, min(whole, int(most)))
        while high < whole and self._fits(value, high, most):
            low, high = high, min(whole, 2 * high)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._fits(value, middle, most) else (low, middle)
        if low < fewest:
            raise UserError(f"what has to be read of it takes more than the {most:,.0f} positions that the model has")
        return self.part(value, low)

    def _fits(self, value: Any, count: int, most: float) -> bool:
        form: Any = self
        try:
            return bool(form.positions(form.prepare(form.part(value, count))) <= most)
        except UserError:  # too little of the text to be read, such as a space
            return True


def most_positions(reads: Any, model: nn.Module) -> float:
    """The positions that a model has for a value of a form; infinite where they are not counted."""
    return reads.limit(model) if isinstance(reads, CutText) else math.inf


def fit(reads: Any, value: Any, most: float, truncate: bool) -> FittedText:
    """A value of a form, cut to at most `most` positions where `truncate` is set and it takes more.

    Where the model goes on from it, the cut value takes half of them. Raises UserError for one that cannot be read.
    """
    prepared = reads.prepare(value)
    if not truncate or reads.positions(prepared) <= most:
        return FittedText(value, prepared, False)
    value = reads.shortened(value, max(1, most // 2) if reads.goes_on else most)
    return FittedText(value, reads.prepare(value), True)


def use_truncation(skill: Any, truncate: bool) -> None:
    """Have a model in use cut texts that are too long for it. Raises UserError where it reads no texts."""
    if truncate and not isinstance(skill.processor.reads, CutText):
        raise UserError("--truncate is for texts that can be too long, and this model reads none")
    skill.truncate = truncate
