"""Pairs of texts, or of answers in conversations, of which people like the first one better."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, TypeVar

import numpy as np
import torch

from foveate.contracts import IGNORE, Batch, Tokenizer
from foveate.data.batching import Batching
from foveate.data.dataset import Dataset, Example, without_empty
from foveate.data.ragged import Numbers, padded
from foveate.data.table import BETTER, PROMPT, WORSE, Column, DataTable, Record
from foveate.data.text.conversations import asked, encode_conversations, ids_of, turns_of
from foveate.data.text.documents import Conversation
from foveate.data.text.files import Paths, as_paths
from foveate.errors import UserError

TOKENIZER = "tokenizer.json"

Made = TypeVar("Made", bound=Example)


@dataclass(frozen=True)
class Preference:
    """Two texts, the better one first."""

    place: str
    better: str
    """The better text; of conversations the better last answer."""
    worse: str
    conversations: tuple[Conversation, ...] = ()
    """Both conversations, where the texts are answers; the messages that both answer are known."""

    @property
    def text(self) -> str:
        """The text that is to be written."""
        return self.better

    @property
    def texts(self) -> tuple[Any, Any]:
        """What is read: both texts, or both conversations."""
        better, worse = self.conversations or (self.better, self.worse)
        return better, worse

    @property
    def question(self) -> Conversation | None:
        """The messages that both answer, of conversations."""
        if not self.conversations:
            return None
        whole = self.conversations[0]
        return replace(whole, turns=whole.turns[: whole.known])

    def content(self) -> bytes:
        said = (part for one in self.conversations for turn in one.turns for part in turn)
        return "\0".join([self.better, self.worse, *said]).encode()


def read_preferences(paths: Paths) -> Dataset[Preference]:
    """Files of `better<TAB>worse` on each line; a column `prompt`, as trl has it, stands before both texts.

    Both may be lists of messages in files of JSON or Parquet: what is answered is a list `prompt`, or both begin with
    it. Raises UserError, which names the line, for any other.
    """

    def make(place: str, better: str, worse: str, prompt: str) -> Preference:
        before = f"{prompt} " if prompt else ""
        return Preference(place, before + better, before + worse)

    tables = [DataTable(path, (BETTER, WORSE), further=PROMPT) for path in as_paths(paths)]
    if any(map(_holds_conversations, tables)):
        return _read_conversations(tables)
    return read_pairs(paths, make, (BETTER, WORSE), PROMPT)


def _holds_conversations(table: DataTable) -> bool:
    """Whether the first row of a table has a list of messages."""
    first = next((record for record in table.records() if record is not None), None)
    return first is not None and isinstance(first.values[BETTER.name], list)


def _read_conversations(tables: Sequence[DataTable]) -> Dataset[Preference]:
    lines: list[int | None] = []
    rows = ((table, record) for table in tables for record in table.records())
    found = without_empty(((table, record) if record is not None else None for table, record in rows), lines)
    examples = [_preference(record, f"{record.unit} {record.number} of {table.path.name}") for table, record in found]
    return Dataset(tables[0].path.name, examples, "pairs", lines=lines)


def _preference(record: Record, place: str) -> Preference:
    """The pair of a row. Raises UserError where the two conversations answer other messages."""
    prompt = record.values.get(PROMPT.name)
    before = prompt if isinstance(prompt, list) else []
    better, worse = (
        turns_of(before + value if isinstance(value, list) else value, name, record.where)
        for name, value in ((one.name, record.values[one.name]) for one in (BETTER, WORSE))
    )
    shared = [one for one, _ in takewhile(lambda both: both[0] == both[1], zip(better, worse, strict=False))]
    known = len(asked(tuple(shared)))
    for name, turns in ((BETTER.name, better), (WORSE.name, worse)):
        if turns[-1][0] != "assistant":
            raise UserError(f"{record.where}: the {name} must end with what the assistant says")
    if not known:
        raise UserError(f"{record.where}: the two conversations must begin with the same messages, which are answered")
    sides = tuple(Conversation(place, turns, known) for turns in (better, worse))
    return Preference(place, better[-1][1], worse[-1][1], sides)


def read_pairs(
    paths: Paths, make: Callable[..., Made], columns: Sequence[Column], further: Column | None = None
) -> Dataset[Made]:
    """An example made of the place and the cells of each row, with that of the further column; empty rows are left out.

    Raises UserError, which names the line, for a row of other columns, and where there is no row.
    """
    paths = as_paths(paths)
    lines: list[int | None] = []
    rows = ((path, row) for path in paths for row in DataTable(path, columns, further=further))
    found = without_empty(((path, row) if row is not None else None for path, row in rows), lines)
    examples = [
        make(f"{row.place} of {path.name}", *row.cells, *([row.origin] if further else [])) for path, row in found
    ]
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
    """Pairs for a language model: the targets have `labels` (2 B, S), the next token of each, the end token included;
    of conversations, what the assistant says after the messages that both answer.

    Of a text that is longer, the first `longest` tokens are read.
    """

    tokenizer: Tokenizer
    longest: int | None = None

    def prepare(self, dataset: Dataset[Preference]) -> list[tuple[Numbers, Numbers]]:
        """The tokens of both texts that are read or learned, between start and end; those that are not learned, below
        zero, are `~id`."""
        better, worse = self._rows(dataset)
        return [(one[: self._most], other[: self._most]) for one, other in zip(better, worse, strict=True)]

    def different(self, dataset: Dataset[Preference]) -> Dataset[Preference]:
        """The pairs whose texts differ in what is read of them; notes count the others, and the texts that are cut.

        Raises UserError where there is none.
        """
        better, worse = self._rows(dataset)
        most, kept, cut = self._most, list[int](), 0
        for number, (one, other) in enumerate(zip(better, worse, strict=True)):
            cut += most is not None and max(len(one), len(other)) > most
            kept += [] if np.array_equal(one[:most], other[:most]) else [number]
        within = f" in the first {self.longest:,} tokens, which the model reads" if cut else " to the model"
        if not kept:
            raise UserError(f"{dataset.name}: the two texts of each pair are equal{within}: there is nothing to learn")
        notes = [f"{cut:,} have a text that is cut after {self.longest:,} tokens"] if cut else []
        if len(kept) < len(dataset):
            notes.append(f"left out: {len(dataset) - len(kept):,} whose texts are equal{within}")
        return dataset.only(kept, *notes) if notes else dataset

    @property
    def _most(self) -> int | None:
        """The tokens of a row: what is read, and the one that is learned last."""
        return None if self.longest is None else self.longest + 1

    def _rows(self, dataset: Dataset[Preference]) -> list[list[Numbers]]:
        sides = [example.texts[0] for example in dataset], [example.texts[1] for example in dataset]
        if len(dataset) and dataset[0].conversations:
            return [[*encode_conversations(side, self.tokenizer)] for side in sides]
        special = self.tokenizer.special
        return [[np.array([special.start, *row, special.end]) for row in self.tokenizer.encode(side)] for side in sides]

    def cost(self, prepared: Any) -> int:
        """Tokens of both texts as they are filled up."""
        return 2 * (max(map(len, prepared)) - 1)

    def batch(self, prepared: Sequence[Any], generator: np.random.Generator | None) -> Batch:
        rows = [row for pair in prepared for row in pair]
        tokens, lengths = padded([ids_of(row)[:-1] for row in rows], self.tokenizer.special.pad)
        labels, _ = padded([np.where(row < 0, IGNORE, row)[1:] for row in rows], IGNORE)
        weight = torch.ones(len(prepared), dtype=torch.long)
        return PreferenceBatch({"tokens": tokens, "lengths": lengths}, {"labels": labels}, weight, "")
