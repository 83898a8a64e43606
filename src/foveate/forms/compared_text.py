"""Texts of which pairs are compared in training, and which are read one by one in use.

B batch    T tokens of a text, with those around it
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from foveate.contracts import Batch
from foveate.data.dataset import Dataset
from foveate.data.text.pair_buckets import TokenPair
from foveate.data.text.paired_texts import PairedTexts
from foveate.data.tokens.tokenizers import Tokens
from foveate.forms.form import Changes
from foveate.forms.read_text import ASKED, unknown_note
from foveate.forms.text import Text

Kind = TypeVar("Kind")

ComparedTexts = str | tuple[str, str]
"""A text, or the two of an example."""


@dataclass
class ComparedText(Text):
    """A text: inputs `tokens` (B, T) and `lengths` (B,). An example has two: two rows, one after the other."""

    tokens: Tokens = "subwords"
    """What a text is cut into, where there are no trained weights."""
    vocabulary: int = 8000
    """How many of them to learn, at most, where there are no trained weights."""
    lowercase: bool = False
    """Read lower case only, where there are no trained weights."""
    max_length: int = 128
    """Pairs with more tokens than this in a text, or than the model has positions for, are left out (and counted)."""

    def texts(self, train: Dataset[Any]) -> Iterator[str]:
        return (text for example in train for text in self.value(example))

    def advice(self, train: Dataset[Any], begun: bool) -> list[str]:
        """None: words are learned from what they are compared with."""
        return []

    def value(self, example: Any) -> Any:
        """Both texts of an example."""
        return example

    def place(self, example: Any) -> str:
        """The first text."""
        first, _ = self.value(example)
        return str(first)

    def group(self, example: Any) -> Hashable:
        return self.place(example).casefold()

    def warnings(self, name: str, examples: Sequence[Any]) -> list[str]:
        return unknown_note(name, self.words, (self.place(one) for one in examples[:ASKED]))

    def prepare(self, value: ComparedTexts) -> np.ndarray | TokenPair:
        """The tokens of a text, or of the two of an example."""
        if isinstance(value, str):
            found: np.ndarray = super().prepare(value)
            return found
        return TokenPair(*map(super().prepare, value))

    def cost(self, prepared: np.ndarray | TokenPair) -> int:
        """The tokens of the text, or of the longer one of two."""
        return max(map(len, rows_of(prepared)))

    def places(self, prepared: np.ndarray | TokenPair) -> int:
        rows = rows_of(prepared)
        return len(rows) * max(map(len, rows))

    def positions(self, prepared: np.ndarray | TokenPair) -> int:
        return max(map(len, rows_of(prepared)))

    def batch(self, inputs: dict[str, Tensor], targets: dict[str, Tensor], weight: Tensor) -> Batch:
        return PairedTexts(inputs, targets, weight, "pairs")

    def tensors(
        self, prepared: Sequence[np.ndarray | TokenPair], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        return super().tensors([row for one in prepared for row in rows_of(one)], generator)


def rows_of(prepared: np.ndarray | TokenPair) -> Sequence[np.ndarray]:
    """The rows of a batch that a text or a pair of texts takes."""
    return prepared if isinstance(prepared, TokenPair) else (prepared,)


def regrouped(prepared: Sequence[np.ndarray | TokenPair], rows: Sequence[Kind]) -> list[Sequence[Kind]]:
    """What was computed for each row of a batch, by the texts and pairs that these rows are of."""
    found, begin = [], 0
    for one in prepared:
        found.append(rows[begin : begin + len(rows_of(one))])
        begin += len(found[-1])
    return found
