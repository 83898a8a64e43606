"""What a trained task offers, whichever it is: `foveate run` and `foveate eval` know no more of it than this."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from rich.console import Console
from torch import Tensor, nn

from foveate import bundle, models
from foveate.config import from_dict
from foveate.contracts import Picture
from foveate.data.text_files import digest
from foveate.decoding import Decoding
from foveate.errors import TextError, UserError, quoted
from foveate.nn import TooManyWeightsError, longest_sequence, skip_init
from foveate.training.hardware import choose_device
from foveate.training.settings import check_seed

Example = TypeVar("Example")

START_SIGN = "<start>"
"""Stands for the beginning of a text in pictures."""


@dataclass
class Description:
    """What `config.json` of a run folder says: enough to build the model again, and to train it again."""

    task: str
    family: str
    architecture: dict[str, Any]
    recipe: dict[str, Any]
    contents: dict[str, str] = field(default_factory=dict)
    """A digest of each file or folder that the text to learn from and to validate on was read from."""


@dataclass
class NoOptions:
    """The options of a task that leaves no choice."""

    def check(self) -> None:
        """There is nothing that could be wrong."""


@dataclass
class Writing:
    """How a model that writes is asked to."""

    decoding: Decoding = field(default_factory=Decoding)
    seed: int = 1
    """Seed of random draws."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        self.decoding.check()
        check_seed(self.seed)


@dataclass
class Evaluation:
    """What measuring a model found."""

    answers: list[str]
    """The model's answer to each example, in one line."""
    figures: dict[str, Any]
    """All that was measured, as JSON values."""
    headings: list[str]
    """Of the table that a user sees: a name, then numbers."""
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    """Lines below the table, such as what makes figures comparable."""


@dataclass
class Reading:
    """What a model that reads one text is given: `model(**inputs)`, one row."""

    inputs: dict[str, Tensor]
    pieces: list[str]
    """What to call the places of the text in pictures."""
    length: int
    """How many tokens it has."""
    asked: Sequence[str] = ()
    """What to call the places that are predicted, in a model with queries for these alone."""


@runtime_checkable
class Prediction(Protocol):
    """The answer to one line of input. `json_values()`, where it has that, is what `foveate run --json` prints."""

    @property
    def line(self) -> str:
        """What `foveate run` prints for it; nothing for an empty input."""


@runtime_checkable
class Trained(Protocol):
    """A trained model in use: a `Predictor`, or what uses a public model.

    What loads it, `foveate.tasks.opener`, has `load(folder, device)`, and `run_options(recipe, where)` and
    `eval_options(recipe, where)`: what can be asked of `answer` and `evaluate`, dataclasses whose fields become flags.
    """

    model: nn.Module
    description: dict[str, Any]
    """What `config.json` of its folder says, as `Description`."""

    def answer(self, texts: Sequence[str], options: Any) -> Sequence[Prediction]:
        """The answer to each text, in their order."""

    def longer_than_training(self, texts: Sequence[str]) -> list[int]:
        """The places of texts that are longer than any that the model was trained on."""

    def picture(self, prediction: Any) -> Picture | None:
        """Where the model looked for one of its answers; None if it does not attend."""

    def evaluate(self, data: Sequence[Path], options: Any, console: Console) -> Evaluation:
        """Measure the model on files, or without any on the test part of the source that it was trained on.

        Raises UserError for files that do not fit, and where there is nothing to measure on.
        """


class Loaded(Trained, Protocol):
    """What `foveate.load` gives. Some have more methods, such as `embed` of a model of sentences."""

    def run(self, text: str | Path, options: Any = None, **changes: Any) -> Any:
        """The answer to one input; `changes` replace fields of the options."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


@dataclass
class Opened:
    """A run folder with its model, in evaluation mode on its device."""

    files: bundle.Bundle
    description: Description
    model: nn.Module

    @property
    def where(self) -> str:
        """The place of the description, for messages."""
        return str(self.files.folder / bundle.CONFIG)


def describe(found: bundle.Bundle) -> Description:
    """What a folder says of itself. Raises UserError where that is damaged."""
    return from_dict(Description, found.description, str(found.folder / bundle.CONFIG))


def recipe_value(description: dict[str, Any], *names: str, kind: Any = object) -> Any:
    """What the recipe in a folder's description says under these names, a value of this kind.

    Raises UserError where somebody took it out, or put something else in.
    """
    value = description["recipe"]
    for name in names:
        if not isinstance(value, dict) or name not in value:
            raise UserError(f"{bundle.CONFIG} has no recipe.{'.'.join(names)}: what was trained, and on what, is lost")
        value = value[name]
    if not isinstance(value, kind):
        raise UserError(f"{bundle.CONFIG} has the recipe.{'.'.join(names)} {value!r}, which cannot be")
    return value


def check_unchanged(description: dict[str, Any]) -> None:
    """Raise UserError where the text that a model was trained on is not there any more as it was."""
    learned = {str(Path(name)) for name in recipe_value(description, "examples", "data", kind=list | tuple)}
    for name, before in description.get("contents", {}).items():
        path = Path(name)
        if name in learned and (path.is_file() or path.is_dir()) and digest(path) != before:
            raise UserError(f"{path} is not what the model was trained on: it changed, or is another of this name")


def check_positions(
    model: nn.Module, texts: Sequence[str], lengths: Iterable[tuple[int, int]], num_special_tokens: int = 1
) -> None:
    """Raise TextError for the first text that takes more positions, with a start or an end, than the model has learned.

    `lengths` tell the place of each text that has any tokens, and how many.
    """
    most = longest_sequence(model)
    for place, length in lengths:
        if (taken := length + num_special_tokens) > most:
            wrong = f"{quoted(texts[place])} takes {taken:,} positions, but the model learned only {most:,}"
            raise TextError(place, wrong)


def without_too_long(
    model: nn.Module, examples: Sequence[Example], lengths: Iterable[int], name: str, console: Console
) -> list[Example]:
    """The examples to validate on that the model has positions for; a line tells how many others there are.

    Raises UserError where there are only others.
    """
    most = longest_sequence(model)
    fitting = [example for example, length in zip(examples, lengths, strict=True) if length <= most]
    if left_out := len(examples) - len(fitting):
        told = f"{name}: {left_out:,} of {len(examples):,} left out of validation for more than {most:,} positions"
        if not fitting:
            raise UserError(told)
        console.print(told, markup=False, highlight=False)
    return fitting


def unseen_labels(kind: str, right: Sequence[str], known: Collection[str]) -> list[str]:
    """A note, where some of what is said of the examples of a text is nothing that a model could tell apart."""
    others = Counter(one for one in right if one not in known)
    if not others:
        return []
    named = ", ".join(name for name, _ in others.most_common(3)) + (", ..." if len(others) > 3 else "")
    return [f"{others.total():,} of {len(right):,} have {kind} that the model did not learn: {named}"]


def load_run(folder: Path | str, device: str) -> Opened:
    """The model of a run folder, on a device ("auto": a GPU if there is one).

    Raises UserError, one line, for whatever is missing or damaged.
    """
    found = bundle.load(folder)
    description = describe(found)
    kind = models.config_class(description.family)
    config = from_dict(kind, description.architecture, str(found.folder / bundle.CONFIG))
    try:
        with skip_init(at_most=2 * found.numbers):
            model = models.build(description.family, config)
    except TooManyWeightsError:
        raise UserError(
            f"{found.folder / bundle.CONFIG} tells of a far larger model than {bundle.WEIGHTS} holds: "
            f"probably they are of two different models"
        ) from None
    found.fill(model)
    return Opened(found, description, model.to(choose_device(device)).eval())
