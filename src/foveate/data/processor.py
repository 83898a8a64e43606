"""What turns examples into tensors."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from foveate.config import from_dict
from foveate.contracts import Batch
from foveate.data.dataset import Dataset, E
from foveate.files import read_json

PROCESSOR = "processor.json"
"""The file of a run folder that holds a processor's fields."""

Own = TypeVar("Own", bound="SavedProcessor")


class SavedProcessor(ABC):
    """What a model needs to read examples: it is saved with the model.

    A dataclass whose fields are JSON values has nothing to add to `files` and `load`. One that holds a tokenizer adds
    the tokenizer's file.
    """

    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """The fields of a model's config that the data decides, such as `vocabulary`."""

    def check(self) -> None:  # noqa: B027
        """Raise UserError for values that cannot be: a file may hold any of the right type."""

    @property
    def summary(self) -> str:
        """What it learned from the examples, for the user."""
        return ", ".join(f"{size:,} {name.replace('_', ' ')}" for name, size in self.sizes().items())

    @property
    def report(self) -> str:
        """One line for the user, or more: what of the examples a vocabulary was not learned from."""
        return "\n".join(dict.fromkeys(line for part in vars(self).values() if (line := getattr(part, "report", ""))))

    def files(self) -> dict[str, Callable[[Path], object]]:
        """The files that `load` needs, and what writes each."""
        text = json.dumps(asdict(self), ensure_ascii=False)  # type: ignore[call-overload]
        return {PROCESSOR: lambda path: path.write_text(text, encoding="utf-8")}

    @classmethod
    def load(cls: type[Own], folder: Path) -> Own:
        """The processor of a run folder. Raises UserError for whatever is missing or damaged."""
        return from_dict(cls, read_json(folder / PROCESSOR), str(folder / PROCESSOR))


class Processor(SavedProcessor, Generic[E]):
    """Turns the examples of one kind of data into batches."""

    def prepare(self, dataset: Dataset[E]) -> Sequence[Any]:
        """What is computed once for each example, such as its tokens or pixels. By default the example itself."""
        return list(dataset)

    def cost(self, prepared: Any) -> int:
        """What an example takes of a batch's budget: tokens, frames. By default 1."""
        return 1

    def rows(self, prepared: Any) -> int:
        """How many rows of a batch an example takes, each of its cost. By default 1."""
        return 1

    def tie_break(self, prepared: Any) -> int:
        """What examples of the same cost are sorted by. By default they stay in random order."""
        return 0

    def group(self, prepared: Any) -> int:
        """Examples of one group are put in the same batch, so that it can compute what they share once. By default all
        are of one group, in random order."""
        return 0

    @abstractmethod
    def batch(self, prepared: Sequence[Any], generator: np.random.Generator | None) -> Batch:
        """A batch of prepared examples, changed at random by `generator` where one is given: in training."""
