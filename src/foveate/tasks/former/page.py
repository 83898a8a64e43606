"""What the page of a task says: its data, processor, objective, answers, measures and pictures.

Whatever has a default here, a page may leave out.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tyro
from rich.console import Console
from torch import nn

from foveate.data import Splits, open_source
from foveate.data.buckets import BucketedBatches, OneBucket
from foveate.data.dataset import Dataset
from foveate.data.processor import SavedProcessor
from foveate.errors import UserError
from foveate.nn import attends
from foveate.tasks.examples.example_source import Examples
from foveate.tasks.former.predictor import Measured, Predictor, compare_ways
from foveate.tasks.former.recipe import Architecture
from foveate.tasks.protocols import Evaluation, NoOptions, Prediction
from foveate.tasks.start.beginning import Beginning
from foveate.training import Batches, CrossEntropy, Objective, Validation
from foveate.viewer.protocol import Input, InputKind, LookResult


@dataclass(kw_only=True)
class Page(Beginning[Architecture], ABC):
    """The settings of a training and what a task says of itself. `Task` adds what every task does."""

    metric: ClassVar[str] = "accuracy"
    """The metric of `measure` that chooses the best checkpoint."""
    higher_is_better: ClassVar[bool] = True
    files: ClassVar[str] = "FILE"
    """What --data takes, for messages: "FOLDER"."""
    takes: ClassVar[InputKind] = "text"
    """What `foveate look` gives to `look`."""
    processor: ClassVar[type[SavedProcessor]]
    """What `fit` makes, and a run folder keeps."""
    options: ClassVar[type[Any]] = NoOptions
    """The flags of `foveate run` and `foveate eval`: a dataclass with a method `check`."""

    examples: Annotated[Any, tyro.conf.arg(name="")] = field(default_factory=Examples)

    @abstractmethod
    def read(self, paths: Sequence[Path]) -> Dataset[Any]:
        """The examples in a user's files."""

    def open_source(self, name: str) -> Splits[Any]:
        """The data by name."""
        return open_source(name, task=self.task)

    @abstractmethod
    def fit(self, train: Dataset[Any]) -> SavedProcessor:
        """The processor for the examples: their vocabulary, labels, sizes."""

    def trained_processor(self) -> SavedProcessor | None:
        """The processor of a run that the training goes on from, if there is one."""
        return None if self.start is None else self.start_parts.processor(self, self.processor)

    def grow(self, trained: Any, train: Dataset[Any]) -> SavedProcessor:
        """The processor of such a run with what the examples add to it, such as labels."""
        processor: SavedProcessor = trained
        return processor

    def check_examples(self, train: Dataset[Any], validation: Dataset[Any]) -> None:
        """Raise UserError for examples that cannot be learned."""

    def advice(self, train: Dataset[Any]) -> list[str]:
        """Lines for the user, told before the training: what is done with such examples, what would learn more."""
        return []

    def hold_out(self, train: Dataset[Any], every: int) -> tuple[Dataset[Any], Dataset[Any]]:
        """The examples without one of `every`, and these."""
        return train.held_out(every)

    def examples_to_validate(self, predictor: Predictor, validation: Dataset[Any], console: Console) -> Sequence[Any]:
        """The examples that each validation during training decides about."""
        return validation.some(self.examples.validation_examples)

    def batches(self, train: Dataset[Any], processor: Any) -> Batches:
        """The batches to learn from; their `report`, if they have one, says what was left out."""
        return BucketedBatches(OneBucket(train, processor), self.examples.batch, self.training.seed)

    def validation(self, predictor: Predictor, validation: Dataset[Any], console: Console) -> Validation:
        """What is measured during training, and decides which weights are kept."""
        examples = self.examples_to_validate(predictor, validation, console)
        options = type(self).eval_options(self.as_json(), "the settings")

        def measure(model: nn.Module) -> dict[str, float]:
            return self.measure(predictor, examples, options).metrics

        return Validation(measure, self.metric, self.higher_is_better)

    def objective(self) -> Objective:
        """What is minimised."""
        settings = self.training
        return CrossEntropy(settings.label_smoothing, settings.choice_weight, settings.entropy_bonus)

    @abstractmethod
    def answer(self, predictor: Predictor, texts: Sequence[str], options: Any) -> Sequence[Prediction]:
        """The answer to each argument of `foveate run`, in their order."""

    @abstractmethod
    def measure(self, predictor: Predictor, examples: Sequence[Any], options: Any) -> Measured:
        """The answers to examples, and metrics of them."""

    def examples_to_measure(self, data: Sequence[Path], options: Any) -> Dataset[Any]:
        """What `foveate eval` measures on: a user's data, or the test part of the source that was learned from.

        Raises UserError where there is neither.
        """
        source = self.examples.source
        if not data and source is None:
            raise UserError(f"this model was trained on files: give --data {self.files} to measure it on")
        return self.read(data) if data else self.open_source(str(source)).test

    def evaluation(self, predictor: Predictor, dataset: Dataset[Any], options: Any, console: Console) -> Evaluation:
        """What `foveate eval` shows: the metrics of the model beside those of the baselines."""
        return compare_ways(predictor, dataset, options)

    def baselines(self, predictor: Predictor, examples: Sequence[Any], options: Any) -> dict[str, dict[str, float]]:
        """The same metrics of trivial ways to answer, by name."""
        return {}

    def notes(self, predictor: Predictor, examples: Sequence[Any]) -> list[str]:
        """Lines below the table of `foveate eval`."""
        return []

    def picture(self, predictor: Predictor, prediction: Any) -> Any:
        """Where the model looked for one of its answers, a figure; None if it does not attend."""
        return None

    def attends(self, predictor: Predictor) -> bool:
        """False for a model that has nothing to look at, whatever it reads."""
        return attends(predictor.model)

    @property
    def has_look(self) -> bool:
        """Whether `foveate look` has a page for the task."""
        return type(self).look is not Page.look

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        """A look at the model while it reads an input."""
        raise no_look(self.task)

    def expand(self, places: Sequence[str]) -> list[str]:
        """The inputs for the arguments of `foveate run`, such as the files of a folder."""
        return list(places)

    def longer_than_training(self, predictor: Predictor, texts: Sequence[str]) -> list[int]:
        """The places of inputs that are longer than any that the model was trained on."""
        return []

    @classmethod
    def run_options(cls, recipe: Mapping[str, Any], where: str) -> Any:
        """The flags of `foveate run`, with the defaults of a folder's recipe."""
        return cls.options()

    @classmethod
    def eval_options(cls, recipe: Mapping[str, Any], where: str) -> Any:
        """The flags of `foveate eval`, likewise."""
        return cls.run_options(recipe, where)


def no_look(task: str) -> UserError:
    """Of a task whose page does not say what a look is."""
    return UserError(f"the task {task} has no page of a look; see foveate run --picture")
