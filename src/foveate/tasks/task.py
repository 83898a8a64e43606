"""A task: one page that names its data, processor, models, objective and measure. What every task does is written here.

A page subclasses `Task` and its `Examples`, and has one row in `foveate.tasks.TASKS`. `tasks/classify_image.py` is the
shortest example.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
import tyro
from rich.console import Console
from torch import nn

from foveate.data import Splits, open_source
from foveate.data.buckets import BucketedBatches
from foveate.data.dataset import Dataset
from foveate.data.processor import SavedProcessor
from foveate.errors import UserError
from foveate.nn import attends
from foveate.tasks.example_source import Examples
from foveate.tasks.predictor import Measured, Predictor, compare_ways
from foveate.tasks.recipe import Architecture, Recipe
from foveate.tasks.texts import HELD_OUT
from foveate.tasks.trained import Evaluation, NoOptions, Prediction
from foveate.training import Batches, Callback, CrossEntropy, Objective, Validation, main_process, train
from foveate.training.checkpoints import CONTENT
from foveate.viewer.protocol import Input, InputKind, LookResult


@dataclass(kw_only=True)
class Task(Recipe[Architecture], ABC):
    """The settings of a training, from which flags, config file and help are derived, and what the task does."""

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

    # What a page says

    @abstractmethod
    def read(self, paths: Sequence[Path]) -> Dataset[Any]:
        """The examples in a user's files."""

    def open_source(self, name: str) -> Splits[Any]:
        """The data by name."""
        return open_source(name, task=self.task)

    @abstractmethod
    def fit(self, learn: Dataset[Any]) -> SavedProcessor:
        """The processor for the examples: their vocabulary, labels, sizes."""

    def check_examples(self, learn: Dataset[Any], check: Dataset[Any]) -> None:
        """Raise UserError for examples that cannot be learned."""

    def hold_out(self, learn: Dataset[Any], every: int) -> tuple[Dataset[Any], Dataset[Any]]:
        """The examples without one of `every`, and these."""
        return learn.held_out(every)

    def examples_to_validate(self, predictor: Predictor, check: Dataset[Any], console: Console) -> Sequence[Any]:
        """The examples that each validation during training decides about."""
        return check.some(self.examples.validation_examples)

    def batches(self, learn: Dataset[Any], processor: Any) -> Batches:
        """The batches to learn from; their `report`, if they have one, says what was left out."""
        return BucketedBatches(learn, processor, self.examples.batch, self.training.seed)

    def validation(self, predictor: Predictor, check: Dataset[Any], console: Console) -> Validation:
        """What is measured during training, and decides which weights are kept."""
        examples = self.examples_to_validate(predictor, check, console)
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
        return type(self).look is not Task.look

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        """A look at the model while it reads an input."""
        raise UserError(f"the task {self.task} has no page of a look; see foveate run --picture")

    def expand(self, places: Sequence[str]) -> list[str]:
        """The inputs for the arguments of `foveate run`, such as the files of a folder."""
        return list(places)

    def too_long(self, predictor: Predictor, texts: Sequence[str]) -> list[int]:
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

    # What every task does

    def check_length(self, model: nn.Module) -> None:
        """Only the data tells how long examples are."""

    @cached_property
    def _digests(self) -> dict[str, str]:
        given = (self.examples.data, self.examples.validation)
        parts = [paths for paths in given if paths and all(path.exists() for path in paths)]
        return {", ".join(map(str, paths)): self.read(paths).digest() for paths in parts}

    def contents(self) -> dict[str, str]:
        """A digest of the user's examples, as they are now."""
        return self._digests

    def open(self) -> tuple[Dataset[Any], Dataset[Any]]:
        """What to learn from and what to validate on. Raises UserError where there is nothing."""
        chosen = self.examples
        validation = self.read(chosen.validation) if chosen.validation else None
        if chosen.source is not None:
            splits = self.open_source(chosen.source)
            return splits.train, validation or splits.dev
        if not chosen.data:
            raise UserError(f"nothing to learn from: name a source (see `foveate data`) or give --data {self.files}")
        learn = self.read(chosen.data)
        if validation is not None:
            return learn, validation
        every = max(20, -(-len(learn) // HELD_OUT))
        if len(learn) < every:
            raise UserError(
                f"{learn.name} has {len(learn)} {learn.unit}, too few to hold some out; give --validation {self.files}"
            )
        return self.hold_out(learn, every)

    def learn(
        self,
        splits: Splits[Any] | None = None,
        console: Console | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Predictor:
        """Train the model on the task's data, or on the given `splits`, and save it in `out`.

        `callbacks` are called with each row of `metrics.jsonl`, a table of plain values.

        Raises UserError for anything in the settings or the data that cannot work, before the training.
        """
        console = self.console(console)
        self.check()
        learn, check = (splits.train, splits.dev) if splits else self.open()
        for part in (learn, check):
            console.print(part.report, markup=False, highlight=False)
        self.check_examples(learn, check)
        processor = self.fit(learn)
        batches = self.batches(learn, processor)
        if report := getattr(batches, "report", ""):
            console.print(report, markup=False, highlight=False)
        model = self._model(processor.sizes())
        console.print(self.summary(model, processor.summary), markup=False, highlight=False)
        predictor = Predictor(self, model, processor, self.description(model))
        self._try_first_batch(model, batches)
        validation = self.validation(predictor, check, console)
        by_name = (
            {} if self.examples.data else {f"examples{CONTENT}{part.name})": part.digest() for part in (learn, check)}
        )
        self._train(predictor, batches, validation, by_name, console, callbacks)
        return predictor

    def _model(self, sizes: Mapping[str, int]) -> nn.Module:
        """The model with the sizes of the data that its config has fields for, in the fastest layout for images."""
        known = {part.name for part in fields(self.architecture)}  # type: ignore[arg-type]
        model = self.build(**{name: size for name, size in sizes.items() if name in known})
        return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def _try_first_batch(self, model: nn.Module, batches: Batches) -> None:
        """Raise UserError before the training where the model cannot read such examples."""
        with torch.no_grad():
            for batch in batches.epoch(0):
                model.eval()(**batch.rows(slice(0, 1)).inputs)
                break
        model.train()

    def _train(
        self,
        predictor: Predictor,
        batches: Batches,
        validation: Validation,
        by_name: Mapping[str, str],
        console: Console,
        callbacks: Sequence[Callback],
    ) -> None:
        objective, identity = self.objective(), self.identity() | dict(by_name)
        told: dict[str, Any] = {"identity": identity, "console": console, "unit": self.unit, "callbacks": callbacks}

        def begin() -> None:
            if self.usable_before_the_end:
                predictor.save_unfinished(self.out)

        def end() -> None:
            self.finish(predictor.model)
            if main_process():
                predictor.save(self.out)

        train(predictor.model, batches, objective, self.training, self.out, validation, **told, begin=begin, end=end)
