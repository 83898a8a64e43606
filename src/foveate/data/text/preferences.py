"""Pairs of texts of which people like the first one better."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch

from foveate.contracts import IGNORE, Batch, Tokenizer
from foveate.data.batching import Batching
from foveate.data.dataset import Dataset, Example
from foveate.data.ragged import padded
from foveate.data.text.files import Paths, as_paths, read_sentences
from foveate.errors import UserError

TOKENIZER = "tokenizer.json"

Made = TypeVar("Made", bound=Example)


@dataclass(frozen=True)
class Preference:
    """Two texts, the better one first."""

    place: str
    better: str
    worse: str

    @property
    def text(self) -> str:
        """The text that is to be written."""
        return self.better

    def content(self) -> bytes:
        return f"{self.better}\0{self.worse}".encode()


def read_preferences(paths: Paths) -> Dataset[Preference]:
    """Files of `better<TAB>worse` on each line. Raises UserError, which names the line, for any other."""
    paths = as_paths(paths)
    wrong = "one tab must stand between the better text and the worse one"
    return read_table(paths, lambda place, parts: Preference(place, *parts), 2, wrong)


def read_table(paths: Paths, make: Callable[[str, Sequence[str]], Made], columns: int, wrong: str) -> Dataset[Made]:
    """An example made of each line's place and its texts, parted by tabs; empty lines are left out.

    Raises UserError, which names the line and says what is `wrong`, for one that has not so many texts.
    """
    paths = as_paths(paths)
    examples = []
    for path in paths:
        for number, line in enumerate(read_sentences(path), 1):
            if not line.strip():
                continue
            parts = [part.strip() for part in line.split("\t")]
            if len(parts) != columns or not all(parts):
                raise UserError(f"{path}, line {number}: {wrong}")
            examples.append(make(f"line {number} of {path.name}", parts))
    if not examples:
        raise UserError(f"{paths[0]}: there is no pair in it")
    return Dataset(paths[0].name, examples, "pairs")


class PreferenceBatch(Batch):
    """Pairs of rows, the better text of each first. An example is a pair."""

    def select(self, chosen: slice) -> "PreferenceBatch":
        texts = torch.arange(2 * len(self.weight)).view(-1, 2)[chosen].flatten()
        inputs, targets = ({name: value[texts] for name, value in part.items()} for part in (self.inputs, self.targets))
        return replace(self, inputs=inputs, targets=targets, weight=self.weight[chosen])


@dataclass
class PreferenceBatching(Batching[Preference]):
    """Pairs for a language model: the targets have `labels` (2 B, S), the next token of each, the end token included.

    Of a text that is longer, the first `longest` tokens are read.
    """

    tokenizer: Tokenizer
    longest: int | None = None

    def prepare(self, dataset: Dataset[Preference]) -> list[tuple[list[int], list[int]]]:
        better = self.tokenizer.encode([example.better for example in dataset])
        worse = self.tokenizer.encode([example.worse for example in dataset])
        return list(zip(better, worse, strict=True))

    def cost(self, prepared: Any) -> int:
        """Tokens of both texts as they are filled up."""
        return 2 * (1 + max(map(len, prepared)))

    def batch(self, prepared: Sequence[Any], generator: np.random.Generator | None) -> Batch:
        special, most = self.tokenizer.special, self.longest and self.longest + 1
        texts = [text for pair in prepared for text in pair]
        rows = [np.array([special.start, *text, special.end])[:most] for text in texts]
        tokens, lengths = padded([row[:-1] for row in rows], special.pad)
        labels, _ = padded([row[1:] for row in rows], IGNORE)
        weight = torch.ones(len(prepared), dtype=torch.long)
        return PreferenceBatch({"tokens": tokens, "lengths": lengths}, {"labels": labels}, weight, "")
