"""What `foveate run` and `foveate eval` know of a trained task: what it is asked, answers and measures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rich.console import Console
from torch import Tensor, nn

from foveate.contracts import Picture
from foveate.decoding import Decoding
from foveate.training.settings import check_seed

END_SIGN = "¶"
"""Stands for the end of a text in pictures."""

START_SIGN = "<start>"
"""Stands for the beginning of a text in pictures."""


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


HEADINGS = {"macro_f1": "macro F1", "roc_auc": "ROC AUC", "tokens": "tokens in place", "whole": "whole texts"}
"""Headings of metrics whose names say less."""


def evaluation_rows(ways: Mapping[str, Mapping[str, float]]) -> tuple[list[str], list[list[str]]]:
    """The names of all metrics and a row of them for each way to answer."""
    names: Iterable[str] = dict.fromkeys(name for metrics in ways.values() for name in metrics)
    rows = [
        [way, *(f"{metrics[name]:.2f}" if name in metrics else "" for name in names)] for way, metrics in ways.items()
    ]
    return [HEADINGS.get(name, name.replace("_", " ")) for name in names], rows


@dataclass
class ModelInputs:
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
class AnyPredictor(Protocol):
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


class LoadedPredictor(AnyPredictor, Protocol):
    """What `foveate.load` gives. Some have more methods, such as `embed` of a model of sentences."""

    def run(self, text: str | Path, options: Any = None, **changes: Any) -> Any:
        """The answer to one input; `changes` replace fields of the options."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
