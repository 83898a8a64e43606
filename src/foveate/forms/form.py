"""What a form is: a kind of value that a model reads or writes, with all that belongs to it.

    reads    a value is opened, learned from, turned into tensors, named and drawn
    writes   a value is a target of training, decided from a model's output, printed, measured and drawn

B batch    T targets of an example    S places of an input
"""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeAlias, TypeVar, get_type_hints

import numpy as np
import torch
import tyro
from torch import Tensor, nn

from foveate.config import from_dict
from foveate.contracts import Batch, Picture
from foveate.data.buckets import Buckets, OneBucket
from foveate.data.dataset import Dataset, Prepared
from foveate.data.splits import COPY, ORIGINS, Ties
from foveate.data.table import TEXT, Column
from foveate.files import read_json
from foveate.forms.answers import Answer, NoOptions
from foveate.forms.grids import GridFinder
from foveate.forms.measured_form import MeasuredForm
from foveate.forms.naming import DecoderNames, Naming, encoder_decoder_names, single_input_names
from foveate.viewer.marks import Mark
from foveate.viewer.protocol import Input, InputKind
from foveate.viewer.sides import SidePair

if TYPE_CHECKING:
    from foveate.sight import Sight

Value = TypeVar("Value")

LEARNED = tyro.conf.Suppress
"""Marks a field that the training data fills: it is not a flag, and a recipe does not hold it."""

Learned: TypeAlias = Annotated[Value, LEARNED]

Own = TypeVar("Own", bound="Form")


class MapRow(NamedTuple):
    """Where a model looked for a part of its answer, such as a word of it."""

    name: str
    weights: Any
    """Weights over the places of the input (S,)."""
    site: str = ""
    """Where in the model these weights are, for titles."""
    mark: Mark | None = None
    """What was found, to be drawn over the input."""


class Fit(NamedTuple):
    """How an image was laid into the top left corner of a square: scaled, then perhaps flipped from left to right."""

    given: tuple[int, int]
    """Width and height of the image."""
    scaled: tuple[int, int]
    """The same in the square."""
    flipped: bool = False


@dataclass
class Changes:
    """How the inputs of a batch were changed at random in training, for targets that have to follow."""

    fits: Sequence["Fit"] = ()
    """How each image was laid into its square."""
    partners: np.ndarray | None = None
    """The example of the batch that was mixed into each one (B,)."""
    pixels: np.ndarray | None = None
    """The changed images (B, C, h, w) in 8 bits, for a model that writes them again."""
    share: float = 0.0
    """The share of what was mixed in."""


class Form:
    """A kind of value. A subclass is a dataclass of settings and of what was learned."""

    saved_apart: ClassVar[Mapping[str, str]] = {}
    """Fields that are no JSON, such as a tokenizer, and the file of each; `load_part` reads them."""

    def check(self) -> None:
        """Raise UserError for a setting that cannot be."""

    def check_learned(self) -> None:
        """Raise UserError for something learned that cannot be: a file may hold any values of the right types."""

    def sizes(self) -> Mapping[str, int]:
        """The fields of a model's config that the data decides, such as `classes`."""
        return {}

    @property
    def summary(self) -> str:
        """What was learned from the examples, for the user."""
        return ", ".join(f"{size:,} {name.replace('_', ' ')}" for name, size in self.sizes().items())

    def warnings(self, name: str, examples: Sequence[Any]) -> list[str]:
        """Lines about examples to validate on, from the dataset `name`: what a vocabulary lacks of them."""
        return []

    @property
    def report(self) -> str:
        """Lines for the user: what a vocabulary was not learned from."""
        return "\n".join(dict.fromkeys(line for part in vars(self).values() if (line := getattr(part, "report", ""))))

    def with_settings(self: Own, other: "Form") -> Own:
        """This form, as it was learned, with the settings of another of its kind."""
        found = copy(self)
        for name in setting_names(type(self)):
            setattr(found, name, getattr(other, name))
        return found

    def as_json(self) -> dict[str, Any]:
        """Settings and what was learned, without what is saved apart."""
        from dataclasses import asdict

        bare = copy(self)
        for name in self.saved_apart:
            setattr(bare, name, None)
        values = asdict(bare)  # type: ignore[call-overload]
        return {name: value for name, value in values.items() if name not in self.saved_apart}

    def files(self) -> dict[str, Callable[[Path], object]]:
        """The files beside processor.json, and what writes each."""
        parts = ((file, getattr(self, name)) for name, file in self.saved_apart.items())
        return {file: part.save for file, part in parts if part is not None}

    @classmethod
    def load(cls: type[Own], values: Any, folder: Path, where: str) -> Own:
        """A form from the values of `as_json`, and the files of `files`. Raises UserError for what is damaged."""
        found = from_dict(cls, values, where)
        for name, file in cls.saved_apart.items():
            if (folder / file).is_file():
                setattr(found, name, cls.load_part(name, folder / file))
        return found

    @classmethod
    def load_part(cls, name: str, path: Path) -> Any:
        """What is saved apart. Raises UserError for a damaged file."""
        return read_json(path)


def setting_names(kind: Any) -> tuple[str, ...]:
    """The fields of a form that are settings: those that nothing has to be learned for."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(part.name for part in fields(kind) if LEARNED not in getattr(hints[part.name], "__metadata__", ()))


class InputForm(Form):
    """A kind of value that a model reads.

    An input is *opened*: an argument becomes a value, such as an image. A value is *prepared*: it gets the numbers that
    are computed once, such as its pixels. Prepared values become *tensors* of a batch.
    """

    kind: ClassVar[InputKind] = "text"
    """What `foveate look` gives to `receive`."""
    name: ClassVar[str] = "text"
    """One value, in messages."""
    columns: ClassVar[tuple[Column, ...]] = (TEXT,)
    """The columns of a table in which an input stands."""
    reads_nothing: ClassVar[bool] = False
    """Whether an empty input is opened, as by a model that goes on from a text; else its answer is empty."""
    worth_optimizing: ClassVar[float] = math.inf
    """Values from which on it is worth to lay the model out for the CPU."""
    places_on_cpu: ClassVar[int | None] = None
    """Places that a CPU answers about together, where fewer than usual are faster."""
    together: ClassVar[int] = 256
    """Examples that are opened together when a model is measured."""
    place_name: ClassVar[str] = "places"
    """What `places` counts, for messages."""
    by_files: ClassVar[bool] = False
    """Whether a training notes digests of its files, instead of one of its examples: a text may fill a disk."""

    def fit(self: Own, architecture: Any) -> Own:
        """This form with the settings that a model's config has the last word on."""
        return self

    def learn(self: Own, train: Dataset[Any], architecture: Any) -> Own:
        """This form with the sizes and the vocabulary of the examples."""
        return self

    def extend(self: Own, trained: Any, train: Dataset[Any]) -> Own:
        """A trained form with the settings of this one, which has learned nothing, and what new examples add."""
        return trained.with_settings(self)

    def follow(self: Own, trained: Any) -> Own:
        """This form, which has learned, as the body of a model needs it that was trained with another such form."""
        return self

    def advice(self, train: Dataset[Any], begun: bool) -> list[str]:
        """Lines for the user before the training: what would learn more. `begun` from trained weights."""
        return []

    def expand(self, given: Sequence[str]) -> list[str]:
        """The inputs for the arguments of `foveate run`, such as the files of a folder."""
        return list(given)

    def open(self, given: str) -> Any:
        """The value of an argument; None where there is nothing in it. Raises UserError for one that cannot be read."""
        raise NotImplementedError

    def receive(self, given: Input, name: str) -> Any:
        """The value of an input of a look. Raises UserError for one of another kind; `name` is the model's."""
        raise NotImplementedError

    def value(self, example: Any) -> Any:
        """The value of an example of a dataset."""
        return example.read()

    def place(self, example: Any) -> str:
        """An example as an argument of `foveate run`: what `open` reads."""
        found: str = example.place
        return found

    def group(self, example: Any) -> Hashable:
        """What is read of an example, or stands for it, in any letter case: examples with the same are copies."""
        return example.content()

    def ties(self, example: Any) -> Ties:
        """What an example has in common with others that must be on its side of a split: see `splits.hold_out`.

        That is its content, and the document or the speaker that it is of, where the data say so.
        """
        origins = {name: getattr(example, name, None) for name in ORIGINS}
        return {COPY: self.group(example), **{name: origin for name, origin in origins.items() if origin}}

    def check_training(self, model: nn.Module, batch: int) -> None:
        """Raise UserError for settings that do not fit a model, which has no weights yet, or the size of a batch."""

    def buckets(self, train: Dataset[Any], processor: Any) -> Buckets:
        """The examples to learn from, prepared by a `Processor`, in buckets of which each fits into memory."""
        return OneBucket(train, processor)

    def prepare(self, value: Any) -> Any:
        """What is computed once for a value. By default the value itself."""
        return value

    def prepare_all(self, dataset: Dataset[Any]) -> Prepared:
        """The prepared values of a dataset."""
        return Prepared([self.prepare(self.value(example)) for example in dataset], range(len(dataset)))

    def cost(self, prepared: Any) -> int:
        """What a value takes of a batch's budget in training: tokens, frames. By default 1."""
        return 1

    def rows(self, prepared: Any) -> int:
        """How many rows of a batch a value takes, each of its cost. By default 1."""
        return 1

    @property
    def copies(self) -> int:
        """How often each example of a batch is in it in training. By default once."""
        return 1

    def batch(self, inputs: dict[str, Tensor], targets: dict[str, Tensor], weight: Tensor) -> Batch:
        """A batch of these tensors, whose examples are rows unless a form says otherwise."""
        return Batch(inputs, targets, weight, "examples")

    def places(self, prepared: Any) -> int:
        """The places that a model keeps for a value: what a batch in use is bounded by. By default as the cost."""
        return self.cost(prepared)

    def positions(self, prepared: Any) -> int:
        """The learned positions of a model that a value takes. By default none."""
        return 0

    def batch_group(self, prepared: Any) -> int:
        """The number of what an example shares with others, such as an image: these come together in a batch."""
        return 0

    def tensors(
        self, prepared: Sequence[Any], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        """The inputs of a model, and how they were changed at random by `generator`, where one is given."""
        raise NotImplementedError

    def longer_than_training(self, prepared: Any) -> bool:
        """Whether a value is longer than any that the model was trained on."""
        return False

    def prefix(self, given: str) -> tuple[str, ...]:
        """What stands before the answer in a line: the file that was read."""
        return ()

    def axis(self, value: Any, prepared: Any, grid: GridFinder) -> Naming:
        """The names of a side of a map whose places are those of the value; `grid` is how the model lays them out."""
        return lambda count: None

    def before(self, places: int, grid: GridFinder) -> int:
        """How many of the places that a model attends to are tokens before those of the value."""
        return 0

    def title(self, given: Input) -> str:
        """The title of a look's page."""
        return given if isinstance(given, str) else given.name

    def of_files(self, dataset: Dataset[Any]) -> Dataset[Any]:
        """The examples of a user's files, read by these settings."""
        return dataset

    def usable(self, dataset: Dataset[Any]) -> Dataset[Any]:
        """The examples without those that are damaged, which a note of the dataset names."""
        return dataset

    def draw(self, value: Any, rows: Sequence[MapRow], title: str, grid: GridFinder) -> Picture | None:
        """The value with the places that each row looked at."""
        return None


class OutputForm(MeasuredForm, Form):
    """A kind of value that a model writes."""

    options: ClassVar[type[Any]] = NoOptions
    """The flags of `foveate run`: a dataclass with a method `check`."""
    eval_options: ClassVar[type[Any]] = NoOptions
    """The flags of `foveate eval`."""
    worth_optimizing: ClassVar[float] = math.inf
    """Answers from which on it is worth to lay a trained model out for the CPU."""
    thoroughness: ClassVar[int] = 0
    """How many times as many other examples, at most, choose the checkpoint in the end as validate during training."""

    def learn(self: Own, train: Dataset[Any], reads: Any, architecture: Any) -> Own:
        """This form with the labels or the vocabulary of the examples."""
        return self

    def extend(self: Own, trained: Any, train: Dataset[Any]) -> Own:
        """A trained form with the settings of this one, which has learned nothing, and what new examples add."""
        return trained.with_settings(self)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes of the model's head in their order; none where it has no such classes."""
        return ()

    def in_order(self: Own, names: Sequence[str]) -> Own:
        """This form with its classes in another order."""
        raise NotImplementedError

    def kinds(self, example: Any) -> Collection[Hashable]:
        """What an example is a case of, such as its label: the last case of a kind is never held out."""
        return ()

    rare_kinds: ClassVar[bool] = False
    """Whether the last case of a kind may be held out, where nothing else can: it is not learned then."""

    def check_examples(self, train: Dataset[Any], validation: Dataset[Any], example: str) -> None:
        """Raise UserError for examples that cannot be learned; an `example` is an "image"."""

    def prepare(self, example: Any) -> list[Any]:
        """The targets of an example: one, or several, each of which makes a row of a batch."""
        raise NotImplementedError

    def prepare_all(self, dataset: Dataset[Any], numbers: Sequence[int]) -> Prepared:
        """The targets of these examples of a dataset; none of one that is damaged."""
        return Prepared([self.prepare(dataset[number]) for number in numbers], numbers)

    def cost(self, prepared: Any) -> int:
        """What a target takes of a batch's budget, beside the input. By default nothing."""
        return 0

    def tensors(
        self, prepared: Sequence[Any], changes: Changes, generator: np.random.Generator | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        """Inputs of the model that come from the targets, the targets (with `labels`), and the weight of each row."""
        raise NotImplementedError

    def run_options(self) -> Any:
        """The options of `foveate run`, with the defaults of these settings."""
        return self.options()

    def measure_options(self) -> Any:
        """The options of `foveate eval`, with the same defaults."""
        return self.eval_options()

    def validation_options(self, thorough: bool) -> Any:
        """The options that validate: often during training, or thoroughly in the end."""
        return self.measure_options()

    def look_options(self) -> Any:
        """The options of the answer that a look shows. By default those of `foveate run`."""
        return self.run_options()

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Any], options: Any
    ) -> Sequence[Answer]:
        """The answers to a batch of inputs, which are on the model's device. Called without gradients."""
        raise NotImplementedError

    def nothing(self) -> Answer:
        """The answer to an empty input."""
        return Answer()

    def at_once(self, device: torch.device) -> int:
        """How many batches are decided about at once. They are made to come out even for this many."""
        return 1

    def decide_all(
        self,
        model: nn.Module,
        batches: Iterable[tuple[Sequence[Any], dict[str, Tensor]]],
        options: Any,
        at_once: int = 1,
    ) -> Iterator[Sequence[Answer]]:
        """The answers to each batch of prepared inputs and their tensors, as soon as they are there."""
        for prepared, inputs in batches:
            yield self.decide(model, inputs, prepared, options)

    def write(self, answers: Sequence[Any], options: Any) -> None:
        """Write what was decided for several inputs into the file that the options name, where they name one."""

    def teach(self, answer: Any) -> dict[str, Tensor]:
        """The inputs that have a model read its own answer, so that a look shows how it was written."""
        return {}

    def axis(self, answer: Any) -> DecoderNames | None:
        """The names of what was written, for a model with a decoder; None for one that only reads."""
        return None

    def side_names(self, sight: "Sight", along: Naming, answer: Any) -> dict[str, SidePair]:
        """The names of the queries and the keys of each site; `along` are those of the places of the input."""
        decoder = self.axis(answer)
        return single_input_names(sight, along) if decoder is None else encoder_decoder_names(sight, along, decoder)

    def rows(self, sight: "Sight", model: nn.Module, answer: Any, before: int) -> list[MapRow]:
        """Where the model looked in its input for each part of the answer; none if it does not attend.

        `before` is the number of tokens, such as a class token, before the places of the input.
        """
        return []

    def draw(self, answer: Any, value: Any, rows: Sequence[MapRow], grid: GridFinder) -> Picture | None:
        """What was written, of the `value` that was read, with the places that each row looked at; None where the form
        that is read draws this."""
        return None
