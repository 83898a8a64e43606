"""A trained model in use, whatever its task is: loaded, run, measured, drawn and saved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console
from torch import Tensor, nn

from foveate import bundle
from foveate.contracts import Output, Picture
from foveate.data.dataset import Dataset
from foveate.data.processor import PROCESSOR, SavedProcessor
from foveate.errors import UserError, unknown
from foveate.inference.cpu import Precision, optimize_for_cpu
from foveate.tasks.protocols import Evaluation, Prediction, evaluation_rows
from foveate.tasks.run_folder import describe, load_run, recipe_value
from foveate.training.folder_lock import lock_to_save

if TYPE_CHECKING:
    from foveate.tasks.former.task import Task


@dataclass
class Measured:
    """What a task measured of its answers to examples."""

    answers: list[str]
    """The answer to each example, in one line."""
    metrics: dict[str, float]


@dataclass(repr=False)
class Predictor:
    """A model with the settings of its task and the processor that it learned with."""

    task: "Task[Any]"
    model: nn.Module
    processor: Any
    """The task's `Processor`."""
    description: dict[str, Any]
    """What `config.json` of its folder says, as `Description`."""
    folder: Path | None = None
    """The folder that it was loaded from."""
    _optimized: dict[Precision, nn.Module] = field(default_factory=dict, init=False, repr=False)

    @property
    def name(self) -> str:
        """The preset and the folder, for messages and pages."""
        return f"{self.task.model} from {self.folder or self.task.out}"

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def forward(self, inputs: Mapping[str, Tensor]) -> Output:
        """The model's output for a batch of inputs, without gradients."""
        with torch.inference_mode():
            return self.model(**self.on_device(inputs))

    def on_device(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The inputs on the model's device."""
        return {name: value.to(self.device) for name, value in inputs.items()}

    def optimized(self, precision: Precision = "float32") -> nn.Module:
        """The model as it runs fastest on a CPU, with the weights that it has when this is first asked for."""
        if precision not in self._optimized:
            self._optimized[precision] = optimize_for_cpu(self.model, precision)
        return self._optimized[precision]

    def run(self, text: str | Path, options: Any = None, **changes: Any) -> Any:
        """The answer to one input. Keyword arguments replace fields of the options, or of their `decoding`."""
        return self.answer([str(text)], with_changes(options or self._options(), changes))[0]

    def answer(self, texts: Sequence[str], options: Any = None) -> Sequence[Prediction]:
        """The answer to each input, in their order."""
        options = options or self._options()
        options.check()
        return self.task.answer(self, texts, options)

    def __repr__(self) -> str:
        return f"<{self.task.task}: {self.name}>"

    def longer_than_training(self, texts: Sequence[str]) -> list[int]:
        return self.task.longer_than_training(self, texts)

    def expand(self, places: Sequence[str]) -> list[str]:
        return self.task.expand(places)

    def picture(self, prediction: Any) -> Picture | None:
        return self.task.picture(self, prediction)

    def evaluate(self, data: Sequence[Path], options: Any, console: Console) -> Evaluation:
        """The metrics of the model on a user's data, or on the test part of its source, beside trivial baselines.

        Raises UserError where there is nothing to measure on.
        """
        options.check()
        recipe_value(self.description, "examples")  # without it defaults would stand for what was trained
        task = self.task
        dataset = task.examples_to_measure(data, options)
        console.print(dataset.report, markup=False, highlight=False)
        return task.evaluation(self, dataset, options, console)

    def save_unfinished(self, folder: Path | str) -> None:
        """Write what a checkpoint lacks of a model in use, before the training."""
        bundle.save_unfinished(folder, self.description, self.processor.files())

    def save(self, folder: Path | str) -> None:
        """Write everything that `load` needs. Raises UserError while a training is running in the folder."""
        with lock_to_save(Path(folder)):
            bundle.save(folder, self.description, self.model.state_dict(), self.processor.files())

    def _options(self) -> Any:
        return type(self.task).run_options(self.task.as_json(), "the settings")


@dataclass(frozen=True)
class Predictors:
    """Makes the predictors of one task: for `foveate run` and `eval`, which know no task."""

    kind: type["Task[Any]"]

    def run_options(self, recipe: Mapping[str, Any], where: str) -> Any:
        return self.kind.run_options(recipe, where)

    def eval_options(self, recipe: Mapping[str, Any], where: str) -> Any:
        return self.kind.eval_options(recipe, where)

    def load(self, folder: Path | str, device: str = "cpu") -> Predictor:
        """The predictor of a run folder. Raises UserError, one line, for whatever is missing or damaged."""
        found = load_run(folder, device)
        task = self.kind.from_json(describe(found.files).recipe, found.where)
        processor: SavedProcessor = self.kind.processor.load(found.files.folder)
        try:
            processor.check()
        except UserError as error:
            raise UserError(f"{found.files.folder / PROCESSOR} is damaged: {error}") from None
        self._check_sizes(processor, found.description.architecture, found.where)
        model = found.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return Predictor(task, model, processor, found.files.description, Path(folder))

    def _check_sizes(self, processor: SavedProcessor, architecture: Mapping[str, Any], where: str) -> None:
        for name, size in processor.sizes().items():
            if architecture.get(name, size) != size:
                raise UserError(
                    f"{where} has the {name} {architecture[name]}, but the files beside it {size}: "
                    f"probably they are of two different models"
                )


def with_changes(options: Any, changes: Mapping[str, Any]) -> Any:
    """The options of a task with other values of some fields, which may be fields of their `decoding`."""
    own, decoding = {one.name for one in fields(options)}, getattr(options, "decoding", None)
    of_decoding = {one.name for one in fields(decoding)} if decoding else set()
    for name in changes:
        if name not in own | of_decoding:
            raise unknown("option", name, own | of_decoding)
    if inner := {name: value for name, value in changes.items() if name not in own}:
        options = replace(options, decoding=replace(options.decoding, **inner))
    return replace(options, **{name: value for name, value in changes.items() if name in own})


def compare_ways(predictor: Predictor, dataset: Dataset[Any], options: Any) -> Evaluation:
    """The metrics of a model on a dataset beside those of the task's baselines."""
    task, examples = predictor.task, list(dataset)
    measured = task.measure(predictor, examples, options)
    ways = {task.model: measured.metrics, **task.baselines(predictor, examples, options)}
    names, rows = evaluation_rows(ways)
    return Evaluation(
        answers=measured.answers,
        figures={dataset.unit: len(examples), "ways": ways},
        headings=["answers by", *names],
        rows=rows,
        notes=[f"{len(examples):,} {dataset.unit}", *task.notes(predictor, examples)],
    )
