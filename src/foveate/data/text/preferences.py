"""Pairs of texts of which people like the first one better."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch

from foveate.contracts import IGNORE, Batch, Tokenizer
from foveate.data.batching import Batching
from foveate.data.dataset import Dataset, Example, without_empty
from foveate.data.ragged import padded
from foveate.data.table import BETTER, WORSE, Column, read_table
from foveate.data.text.files import Paths, as_paths
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
    return read_pairs(paths, Preference, (BETTER, WORSE))


def read_pairs(paths: Paths, make: Callable[..., Made], columns: Sequence[Column]) -> Dataset[Made]:
    """An example made of the place and the cells of each row; empty rows are left out.

    Raises UserError, which names the line, for a row of other columns, and where there is no row.
    """
    paths = as_paths(paths)
    lines: list[int | None] = []
    rows = ((path, row) for path in paths for row in read_table(path, columns))
    found = without_empty(((path, row) if row is not None else None for path, row in rows), lines)
    examples = [make(f"line {row.line} of {path.name}", *row.cells) for path, row in found]
    if not examples:
        raise UserError(f"{paths[0]}: there is no pair in it")
    return Dataset(paths[0].name, examples, "pairs", lines=lines)


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
        """The tokens of both texts that are read."""
        better, worse = self._tokens(dataset)
        return [(one[: self.longest], other[: self.longest]) for one, other in zip(better, worse, strict=True)]

    def different(self, dataset: Dataset[Preference]) -> Dataset[Preference]:
        """The pairs whose texts differ in what is read of them; notes count the others, and the texts that are cut.

        Raises UserError where there is none.
        """
        better, worse = self._tokens(dataset)
        most, kept, cut = self.longest, list[int](), 0
        for number, (one, other) in enumerate(zip(better, worse, strict=True)):
            cut += most is not None and max(len(one), len(other)) > most
            kept += [number] if one[:most] != other[:most] else []
        within = f" in the first {most:,} tokens, which the model reads" if cut else " to the model"
        if not kept:
            raise UserError(f"{dataset.name}: the two texts of each pair are equal{within}: there is nothing to learn")
        notes = [f"{cut:,} have a text that is cut after {most:,} tokens"] if cut else []
        if len(kept) < len(dataset):
            notes.append(f"left out: {len(dataset) - len(kept):,} whose texts are equal{within}")
        return dataset.only(kept, *notes) if notes else dataset

    def _tokens(self, dataset: Dataset[Preference]) -> list[list[list[int]]]:
        texts = [example.better for example in dataset], [example.worse for example in dataset]
        return [self.tokenizer.encode(side) for side in texts]

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
