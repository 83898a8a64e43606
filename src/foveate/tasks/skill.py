"""A model in use: asked, measured, looked at, drawn and saved, whoever trained it."""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

from foveate import run_dir
from foveate.contracts import Output
from foveate.data.buckets import BucketedBatches
from foveate.data.dataset import Dataset
from foveate.data.ragged import even_groups
from foveate.data.text.streamed_text import StreamedText
from foveate.errors import UserError, one_line
from foveate.finite import FiniteOutputs, check_weights
from foveate.forms.answers import Answer, Failure, with_changes
from foveate.forms.checks import check_position_count, within_positions, without_too_long
from foveate.forms.form import OutputForm
from foveate.forms.inputs import as_text
from foveate.forms.label_details import Details, MeasureLabels
from foveate.forms.processor import Processor
from foveate.forms.truncation import FittedText, fit, most_positions
from foveate.inference.cpu import Precision, optimize_for_cpu
from foveate.interop.public_folder import is_public
from foveate.metrics.resampling import Measured, compare_by_resampling
from foveate.sight.watcher import is_watched
from foveate.tasks.evaluation import Evaluation, answers_by_line, evaluation_rows, heading
from foveate.tasks.looking import Looking
from foveate.tasks.recipe import Recipe
from foveate.tasks.run_config import recipe_value
from foveate.tasks.task import Task
from foveate.tasks.training_data import check_training_files, notes_of, read_training
from foveate.training import Batches, Objective, Validation
from foveate.training.folder_lock import lock_to_save
from foveate.training.hardware import choose_workers
from foveate.training.validation import parts_to_validate
from foveate.viewer.protocol import InputKind

PLACES = {"cpu": 4096}
"""Places, such as tokens or patches of 16 x 16 pixels, that are answered about together on each type of device."""

OTHER_DEVICES = 65_536
"""The same on a device that has many cores."""


@dataclass(repr=False)
class Skill(Looking):
    """A model with the forms that it reads and writes.

    `skill("text")` gives one answer, `skill(["a", "b"])` a list of them, with a `Failure` for an input that cannot be
    read.
    """

    task: Task
    recipe: Recipe
    model: nn.Module
    processor: Processor
    description: dict[str, Any]
    """What `config.json` of its folder says."""
    folder: Path | None = None
    """The folder that it was loaded from; None while it is trained."""
    truncate: bool = False
    """Cut texts that take more positions than the model has; else they have no answer."""
    learned_from: tuple[Dataset[Any], Dataset[Any]] | None = field(default=None, init=False, repr=False)
    """What it was trained on, once that was read."""
    _optimized: dict[Precision, nn.Module] = field(default_factory=dict, init=False, repr=False)

    _answered: Sequence[Any] = field(default=(), init=False, repr=False)
    _asked: Sequence[Any] = field(default=(), init=False, repr=False)
    """The answers that were measured last."""

    def __post_init__(self) -> None:
        check_weights(self.model, self.name)

    @classmethod
    def suited(cls, processor: Processor) -> "type[Skill]":
        """The class of models with these forms, where some need another one."""
        return cls

    # -- what it is

    @property
    def name(self) -> str:
        """The preset and the folder, for messages and pages."""
        return f"{self.recipe.model} from {self.folder or self.recipe.out}"

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def takes(self) -> InputKind:
        """What `look` reads."""
        return self.processor.reads.kind

    def __repr__(self) -> str:
        return f"<{self.task.name}: {self.name}>"

    # -- answers

    def __call__(self, given: Any, **changes: Any) -> Any:
        """The answer to one input, or a list with the answer to each of several. See `run` for `changes`."""
        if isinstance(given, str | Path):
            return self.run(given, **changes)
        if not isinstance(given, Sequence | Set | Iterator) or isinstance(given, bytes | bytearray):
            raise UserError(f"{type(given).__name__} is not an input: give a text, a path, or a list of them")
        return list(self.answer(list(given), self.options_with(**changes)))

    def run(self, given: str | Path, options: Any = None, **changes: Any) -> Any:
        """The answer to one input. Keyword arguments replace fields of the options, or of their `decoding`.

        Raises UserError for an input that cannot be read.
        """
        if not isinstance(given, str | Path):
            raise UserError(f"{type(given).__name__} is not one input: give a text or a path; a list goes to the skill")
        (answer,) = self.answer([given], with_changes(options or self.options_with(), changes))
        if isinstance(answer, Failure):
            raise UserError(answer.reason)
        return answer

    def answer(self, given: Sequence[Any], options: Any = None) -> Sequence[Any]:
        """The answer to each input, in their order; a `Failure` for one that cannot be read."""
        options = options or self.options_with()
        options.check()
        found: list[Any] = [self._open(one) for one in given]
        rows = [row for row, one in enumerate(found) if isinstance(one, FittedText)]
        answers = self.answer_prepared([found[row].prepared for row in rows], options)
        if readable := [answer for answer in answers if isinstance(answer, Answer)]:
            self.processor.writes.write(readable, options)
        for row, answer in zip(rows, answers, strict=True):
            text = str(given[row])
            if isinstance(answer, Answer):
                answer.given, answer.prefix = text, self.processor.reads.prefix(text)
                answer.cut = found[row].cut
                answer.long = self.processor.reads.longer_than_training(found[row].prepared)
            found[row] = replace(answer, given=text) if isinstance(answer, Failure) else answer
        return found

    def answer_prepared(self, prepared: Sequence[Any], options: Any) -> list[Any]:
        """The answers to prepared inputs."""
        found = dict(self.answers_as_they_come(prepared, options))
        return [found[row] for row in range(len(prepared))]

    def answers_as_they_come(self, prepared: Sequence[Any], options: Any) -> Iterator[tuple[int, Any]]:
        """The number of each prepared input and its answer, as soon as its batch is done.

        Those with the most places come first, so that too little memory shows at once.
        """
        reads, writes = self.processor.reads, self.processor.writes
        places = np.array([reads.places(one) for one in prepared], np.int64)
        model = self._in_use(len(prepared), options)
        usual = PLACES.get(self.device.type, OTHER_DEVICES)
        budget = reads.places_on_cpu if self.device.type == "cpu" and reads.places_on_cpu else usual
        in_turn = self.folder is None or is_watched(self.model)  # which acts in the thread that has opened it
        at_once = 1 if in_turn else writes.at_once(self.device)
        groups = even_groups(np.argsort(-places, kind="stable"), places, budget, at_once)
        own = ([prepared[row] for row in group.tolist()] for group in groups)
        batches = ((some, self.on_device(reads.tensors(some)[0])) for some in own)
        decided = writes.decide_all(model, batches, options, at_once)
        for group in groups:
            with torch.inference_mode(), FiniteOutputs(model, self.name):
                answers = next(decided)
            yield from zip(group.tolist(), answers, strict=True)

    def expand(self, given: Sequence[str]) -> list[str]:
        """The inputs for the arguments of `foveate run`, such as the files of a folder."""
        return [*self.processor.reads.expand(given)]

    def _open(self, given: Any) -> FittedText | Answer | Failure:
        """An input's value, an empty answer for an empty one, or a failure for one that cannot be read."""
        reads = self.processor.reads
        try:
            text = as_text(given)
            value = reads.open(text) if text.strip() or reads.reads_nothing else None
            if value is None:
                nothing: Answer = replace(self.processor.writes.nothing(), given=str(given))
                return nothing
            found = self.fit(value)
            check_position_count(str(given), reads.positions(found.prepared), self.most_positions)
            return found
        except UserError as error:
            return Failure(str(given), str(error))

    @property
    def most_positions(self) -> float:
        """The positions that the model has for an input; infinite where it reads any number."""
        return most_positions(self.processor.reads, self.model)

    def fit(self, value: Any) -> FittedText:
        """A value that was opened, and the same prepared: cut to the model's positions where `truncate` is set."""
        return fit(self.processor.reads, value, self.most_positions, self.truncate)

    def options_with(self, **changes: Any) -> Any:
        """The options of an answer, with other values of some fields. Raises UserError for one that does not exist."""
        return with_changes(self.processor.writes.run_options(), changes)

    # -- running the model

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

    def _in_use(self, count: int, options: Any) -> nn.Module:
        """The model for this many inputs, laid out for the CPU where they are many or the options name a precision."""
        reads, writes = self.processor.reads, self.processor.writes
        precision: Any = getattr(options, "precision", "float32")
        trained = self.folder is not None
        if is_watched(self.model):
            return self.model
        least = min(reads.worth_optimizing, writes.worth_optimizing if trained else math.inf)
        if precision == "float32" and (self.device.type != "cpu" or self.model.training or count < least):
            return self.model
        return self.optimized(precision) if trained else optimize_for_cpu(self.model, precision)

    # -- measuring

    def evaluate(self, data: Sequence[Path], options: Any = None, console: Console | None = None) -> Evaluation:
        """The metrics of the model on a user's data, or on the test part of its source, beside simple baselines.

        Raises UserError where there is nothing to measure on.
        """
        options = options or self.processor.writes.measure_options()
        options.check()
        self.processor.writes.check_measured()
        recipe_value(self.description, "examples")  # without it defaults would stand for what was trained
        dataset = self.answerable(self.test_examples(self.task.part_to_measure(data), options))
        if console is not None:
            console.print(dataset.report, markup=False, highlight=False)
        with FiniteOutputs(self.model, self.name):
            found = self.compare(dataset, options, console)
        found.notes.extend(notes_of(self, data))
        return found

    def answerable(self, dataset: Dataset[Any]) -> Dataset[Any]:
        """The examples that are not damaged and that the model has positions for; UserError where there are none."""
        usable = self.processor.reads.usable(dataset)
        return within_positions(self.most_positions, usable, self._positions, self.truncate)

    def _positions(self, example: Any) -> int:
        reads = self.processor.reads
        return int(reads.positions(reads.prepare(reads.value(example))))

    def compare(self, dataset: Dataset[Any], options: Any, console: Console | None = None) -> Evaluation:
        """The metrics of the model on a dataset beside those of the baselines."""
        examples = list(dataset)
        answers, metrics = self.measure(examples, options, console)
        ways = {self.recipe.model: metrics, **self.baselines(examples, options)}
        names, rows = evaluation_rows(ways)
        details = self._details(examples, options)
        return Evaluation(
            answers=answers_by_line(answers, dataset.lines),
            figures={dataset.unit: len(examples), "ways": ways, **details.figures},
            headings=["answers by", *names],
            rows=rows,
            tables=details.tables,
            notes=[f"{len(examples):,} {dataset.unit}", *self.notes(examples), *details.lines],
        )

    def _details(self, examples: Sequence[Any], options: Any) -> Details:
        """What the options ask for beside the metrics, of the answers that were measured last."""
        writes, answers, found = self.processor.writes, self._answered, Details()
        asked = isinstance(options, MeasureLabels) and options.asked and answers
        if not asked or (decided := writes.decided(answers, examples)) is None:
            return found
        if options.details:
            found = decided.details()
            (sure,), *_ = compare_by_resampling([writes.measurable(answers, examples)], writes.metric)
            found.figures["interval"] = {"metric": writes.metric, "low": sure.low, "high": sure.high}
            ends = f"{sure.low:.2f} to {sure.high:.2f}"
            found.lines.insert(0, f"{heading(writes.metric)} {sure.value:.2f}, 95 % interval {ends}")
        if options.picture is not None:
            decided.draw(options.picture)
            found.lines.append(f"drew {one_line(options.picture)}")
        return found

    def measure(
        self, examples: Sequence[Any], options: Any, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        """A line for the answer to each example, and metrics of the answers."""
        answers = self.answer_examples(examples, options, console)
        writes = self.processor.writes
        metrics = writes.metrics(answers, examples)
        self._answered, self._asked = answers, examples
        return [one.line for one in answers], metrics | writes.look_metrics(answers, examples, self.maps)

    def measured(self, examples: Sequence[Any], options: Any, console: Console | None = None) -> Measured | None:
        """What `measure` finds, for any of the examples; None where they are only measured together."""
        writes = self.processor.writes
        if type(writes).metrics is OutputForm.metrics:
            return None
        return writes.measurable(self.answer_examples(examples, options, console), examples)

    def answer_examples(self, examples: Sequence[Any], options: Any, console: Console | None = None) -> list[Any]:
        """The answers to the examples of a dataset, with a bar in the terminal of a console."""
        steps = self._examples_as_they_come(examples, options)
        hidden = console is None or not console.is_terminal
        found = dict(track(steps, "answering", len(examples), console=console, disable=hidden))
        return [found[number] for number in range(len(examples))]

    def _examples_as_they_come(self, examples: Sequence[Any], options: Any) -> Iterator[tuple[int, Any]]:
        reads = self.processor.reads
        for begin in range(0, len(examples), reads.together):
            group = examples[begin : begin + reads.together]
            fitted = [self.fit(reads.value(one)) for one in group]
            for row, answer in self.answers_as_they_come([one.prepared for one in fitted], options):
                if isinstance(answer, Failure):
                    raise UserError(answer.reason)
                answer.given = reads.place(group[row])
                answer.prefix = reads.prefix(answer.given)
                yield begin + row, answer

    def baselines(self, examples: Sequence[Any], options: Any) -> dict[str, dict[str, float]]:
        """The same metrics of trivial ways to answer, by name."""
        found: dict[str, dict[str, float]] = self.processor.writes.baselines(
            self.processor.reads, examples, self.train_examples
        )
        return found

    def worth(self, examples: Sequence[Any], options: Any) -> str:
        """Whether the model is better than the best simple baseline; empty where there is none."""
        writes = self.processor.writes
        dataset: Dataset[Any] = self.answerable(Dataset("validation", [*examples], "examples"))
        chosen, metric = [*dataset], writes.metric
        baselines = {name: found[metric] for name, found in self.baselines(chosen, options).items() if metric in found}
        if not baselines:
            return ""
        own, best = self.measure(chosen, options)[1][metric], max(baselines, key=baselines.__getitem__)
        verdict = "above" if own > baselines[best] else "not above"
        return f"{heading(metric)} {own:.1f} on validation: {verdict} {baselines[best]:.1f}, {best}"

    def notes(self, examples: Sequence[Any]) -> list[str]:
        """Lines below the table of `foveate eval`."""
        return [*self.processor.writes.notes(examples)]

    def test_examples(self, data: Sequence[Path], options: Any) -> Dataset[Any]:
        """What to measure on: a user's data, or the test part of the source that was learned from."""
        if data:
            return self.processor.reads.of_files(self.task.read_named(data, self.recipe))
        if (source := self.recipe.examples.source) is None and self.recipe.examples.data:
            return self.processor.reads.of_files(read_training(self)[1])
        if source is None:
            where = "on files" if self.recipe.model in self.task.presets() else "elsewhere"
            raise UserError(f"this model was trained {where}: give --data {self.task.files} to measure it on")
        return self.task.open_source(source, self.recipe).test

    def train_examples(self) -> Dataset[Any]:
        """What was learned from, without what was held out. Raises UserError as `training_parts` does."""
        return self.training_parts()[0]

    def training_parts(self) -> tuple[Dataset[Any], Dataset[Any]]:
        """What was learned from, and what validated it. They are read once.

        Raises UserError where they are not there any more, or where files of text have changed.
        """
        if self.learned_from is None:
            self.learned_from = read_training(self)
        else:
            check_training_files(self)
        return self.learned_from

    # -- training

    def batches(self, train: Dataset[Any]) -> Batches:
        """The batches to learn from; their `report`, if they have one, says what was left out."""
        buckets = self.processor.reads.buckets(train, self.processor)
        training = self.recipe.training
        return BucketedBatches(buckets, self.recipe.examples.batch, training.seed, partial(choose_workers, training))

    def objective(self) -> Objective:
        """What is minimised: that of the recipe, fitted to the model where it depends on it."""
        chosen: Any = self.recipe.objective
        return chosen.fit(self.recipe.architecture) if hasattr(chosen, "fit") else chosen

    def validation(self, validation: Dataset[Any], console: Console) -> Validation:
        """What is measured during training, and decides which weights are kept."""
        writes = self.processor.writes
        examples = self.examples_to_validate(validation, console)
        often, others = parts_to_validate(examples, self.recipe.examples.validation_examples, writes.thoroughness)
        quick, thorough = (writes.validation_options(thorough) for thorough in (False, True))
        in_the_end = (lambda _: self.measure(others, thorough)[1]) if writes.thoroughness else None

        def measure(_: nn.Module) -> dict[str, float]:
            metrics = self.measure(often, quick)[1]
            for line in writes.remarks(self._answered, often) if self._answered else ():
                console.print(line, markup=False, highlight=False)
            return metrics

        return Validation(measure, writes.metric, writes.higher_is_better, thorough=in_the_end)

    def examples_to_validate(self, validation: Dataset[Any], console: Console) -> Sequence[Any]:
        """The examples that validate, without those that are damaged or take more positions than the model has."""
        reads, count = self.processor.reads, self.recipe.examples.validation_examples
        examples = [*self.some(validation, (1 + self.processor.writes.thoroughness) * count)]
        if not isinstance(validation, StreamedText):  # a text has no files that could be damaged
            usable: Dataset[Any] = reads.usable(Dataset(validation.name, examples, validation.unit))
            if len(usable) < len(examples):
                console.print(usable.report, markup=False, highlight=False)
            examples = [*usable]
        for form in (reads, self.processor.writes):
            for line in form.warnings(validation.name, examples):
                console.print(line, markup=False, highlight=False)
        return without_too_long(self.most_positions, examples, self._positions, validation.name, console)

    def some(self, dataset: Dataset[Any], count: int) -> Sequence[Any]:
        """At most `count` examples of a dataset."""
        return dataset.some(count)

    def settle(self) -> None:
        """What answers are decided by, from those to the validation."""
        if self._answered:
            self.processor.writes.settle(self._answered, self._asked)

    # -- saving

    def save_unfinished(self, folder: Path | str) -> None:
        """Write what a checkpoint lacks of a model in use, before the training."""
        run_dir.save_unfinished(folder, self.description, self.processor.files())

    def save(self, folder: Path | str) -> None:
        """Write everything that `load` needs. Raises UserError while a training is running in the folder, and for a
        model of a Hugging Face folder."""
        if self.folder is not None and is_public(self.folder):
            raise UserError(f"{self.folder} is a folder of Hugging Face's: copy it to {folder}")
        with lock_to_save(Path(folder)):
            run_dir.save(folder, self.description, self.model.state_dict(), self.processor.files())


def skill_class(task: Task, processor: Processor) -> type[Skill]:
    """The class of a task's models in use, with these forms."""
    return (Skill if task.skill is None else task.skill()).suited(processor)
