"""What turns the examples of a task into tensors: a form that is read and one that is written."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from foveate.contracts import Batch
from foveate.data.batching import Batching
from foveate.data.dataset import Dataset, Prepared
from foveate.errors import UserError
from foveate.files import read_json
from foveate.forms.form import InputForm, OutputForm
from foveate.run_dir import PROCESSOR


class PreparedExample(NamedTuple):
    """What is computed once for an example: of what is read, and of one of its targets."""

    input: Any
    target: Any


class PreparedExamples(Sequence[PreparedExample]):
    """The examples of a dataset. One with several targets, such as captions of an image, has a row for each."""

    def __init__(self, inputs: Prepared, targets: Prepared) -> None:
        """`targets` are those of each input, perhaps several, perhaps none."""
        self.report = "\n".join(part for part in (inputs.report, targets.report) if part)
        self.slow = inputs.slow
        self._inputs = inputs
        self._rows = [(row, target) for row, own in enumerate(targets) for target in own]

    @cached_property
    def examples(self) -> list[int]:
        """The number of each row's example."""
        return [self._inputs.examples[row] for row, _ in self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        row, target = self._rows[number]
        return PreparedExample(self._inputs[row], target)


@dataclass
class Processor(Batching[Any]):
    """The forms of a task, as its training data made them. It is saved with the model."""

    reads: Any
    """An `InputForm`."""
    writes: Any
    """An `OutputForm`."""

    def prepare(self, dataset: Dataset[Any]) -> PreparedExamples:
        inputs = self.reads.prepare_all(dataset)
        return PreparedExamples(inputs, self.writes.prepare_all(dataset, inputs.examples))

    def cost(self, prepared: PreparedExample) -> int:
        return max(self.reads.cost(prepared.input), self.writes.cost(prepared.target))

    def tie_break(self, prepared: PreparedExample) -> int:
        """How much longer the input is, where a target has a cost: it rises and falls in turn, so that a batch that
        reaches from one cost to the next finds the other side equally long on both sides of the step."""
        if not (own := self.writes.cost(prepared.target)):
            return 0
        excess = self.reads.cost(prepared.input) - own
        return excess if self.cost(prepared) % 2 == 0 else -excess

    def group(self, prepared: PreparedExample) -> int:
        found: int = self.reads.batch_group(prepared.input)
        return found

    def rows(self, prepared: PreparedExample) -> int:
        return self.reads.rows(prepared.input)

    @property
    def repeats(self) -> int:
        copies: int = self.reads.copies
        return copies

    def batch(self, prepared: Sequence[PreparedExample], generator: np.random.Generator | None) -> Batch:
        inputs, changes = self.reads.tensors([one.input for one in prepared], generator)
        more, targets, weight = self.writes.tensors([one.target for one in prepared], changes, generator)
        return self.reads.batch({**inputs, **more}, targets, weight)

    def sizes(self) -> dict[str, int]:
        return {**self.reads.sizes(), **self.writes.sizes()}

    @property
    def summary(self) -> str:
        return ", ".join(part for part in (self.writes.summary, self.reads.summary) if part)

    @property
    def report(self) -> str:
        lines = [*self.reads.report.splitlines(), *self.writes.report.splitlines()]
        return "\n".join(dict.fromkeys(lines))

    def check(self) -> None:
        for form in (self.reads, self.writes):
            form.check()
            form.check_learned()

    def files(self) -> dict[str, Callable[[Path], object]]:
        values = {"reads": self.reads.as_json(), "writes": self.writes.as_json()}
        text = json.dumps(values, ensure_ascii=False)
        return {
            **self.reads.files(),
            **self.writes.files(),
            PROCESSOR: lambda path: path.write_text(text, encoding="utf-8"),
        }


@dataclass
class RowProcessor(Batching[Any]):
    """Makes batches of rows that were prepared before, such as tokens in files of the cache."""

    forms: Processor
    split: Callable[[Any], PreparedExample]
    """What is read and what is written of a row."""

    def cost(self, prepared: Any) -> int:
        return self.forms.cost(self.split(prepared))

    def tie_break(self, prepared: Any) -> int:
        return self.forms.tie_break(self.split(prepared))

    def rows(self, prepared: Any) -> int:
        return self.forms.rows(self.split(prepared))

    def batch(self, prepared: Sequence[Any], generator: np.random.Generator | None) -> Batch:
        return self.forms.batch([self.split(row) for row in prepared], generator)


def saved_forms(folder: Path, upgrade: Callable[[Path], Mapping[str, Any]]) -> Mapping[str, Any]:
    """The values of the forms of a run folder; `upgrade` gives those of one that an earlier version wrote."""
    values = read_json(folder / PROCESSOR) if (folder / PROCESSOR).is_file() else {}
    saved = isinstance(values, dict) and {"reads", "writes"} <= values.keys()
    return values if saved else upgrade(folder)


def load_processor(
    reads: type[InputForm],
    writes: type[OutputForm],
    folder: Path,
    upgrade: Callable[[Path], Mapping[str, Any]],
) -> Processor:
    """The processor of a run folder. Raises UserError for whatever is missing or damaged.

    `upgrade` gives the values of a folder that an earlier version wrote.
    """
    where, values = folder / PROCESSOR, saved_forms(folder, upgrade)
    processor = Processor(
        reads.load(values["reads"], folder, str(where)), writes.load(values["writes"], folder, str(where))
    )
    try:
        processor.check()
    except UserError as error:
        raise UserError(f"{where} is damaged: {error}") from None
    return processor
