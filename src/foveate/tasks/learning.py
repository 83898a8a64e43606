"""Trains what a recipe says: opens the examples, learns the forms, builds the model and saves it."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import nn

from foveate import models
from foveate.console import plain_console
from foveate.data.dataset import Dataset
from foveate.data.layout import is_there
from foveate.data.sources.splits import Splits
from foveate.data.splits import RULE
from foveate.data.text.files import check_readable_again, digest
from foveate.errors import UserError
from foveate.files import check_utf8
from foveate.forms.balance import Balanced
from foveate.forms.processor import Processor
from foveate.nn import add_low_rank, low_rank_updates, merge_low_rank, without_memory
from foveate.run_dir import CHECKPOINTS
from foveate.tasks import find_task
from foveate.tasks.examples.data_options import held_out_every
from foveate.tasks.examples.hub_data import local_paths
from foveate.tasks.loading import ProcessorOf, load
from foveate.tasks.recipe import Recipe
from foveate.tasks.run_config import ADAPTER, WRITTEN, RunConfig
from foveate.tasks.skill import Skill, skill_class
from foveate.tasks.start.plan import Plan
from foveate.tasks.start.weights import HEADS
from foveate.tasks.task import Task, open_examples
from foveate.tensor_files import write_tensors
from foveate.training import Batches, Callback, main_process
from foveate.training import train as train_model
from foveate.training.checkpoints import Checkpoints
from foveate.training.folder_lock import check_folder
from foveate.training.hardware import choose_device
from foveate.training.identity import CONTENT, HELD_OUT, HOLD_OUT_RULE
from foveate.training.parallel.strategy import check_memory
from foveate.training.rates import freeze


def learn(
    recipe: Recipe,
    splits: Splits[Any] | None = None,
    console: Console | None = None,
    callbacks: Sequence[Callback] = (),
) -> Skill:
    """Train what a recipe says on its data, or on the given `splits`; what `foveate.load` would give.

    `callbacks` are called with each row of `metrics.jsonl`, a table of plain values. Raises UserError for anything in
    the settings or the data that cannot work, before the training.
    """
    return Lesson(find_task(recipe.task), recipe).learn(splits, console, callbacks)


def train(recipe: Recipe, callbacks: Sequence[Callback] = ()) -> Skill:
    """Train what a recipe says, such as `foveate.recipe("translate", data="pairs.tsv")`; what `load` would give.

    `callbacks` are functions that are called with each row of `metrics.jsonl`, a table of plain values: to draw curves,
    or to pass them to a tracker. One that fails is told of and not called again.
    """
    return learn(recipe, callbacks=callbacks)


@dataclass
class Lesson:
    """The training of one recipe."""

    task: Task
    recipe: Recipe

    def __post_init__(self) -> None:
        self.plan = Plan(self.task, self.recipe)
        self._read: dict[Sequence[Path], Dataset[Any]] = {}
        self._digests: dict[str, str] | None = None

    def learn(
        self,
        splits: Splits[Any] | None = None,
        console: Console | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Skill:
        """Train the model on the recipe's data, or on the given `splits`, and save it in its folder `out`.

        Raises UserError for anything in the settings or the data that cannot work, before the training.
        """
        console = console or plain_console(stderr=True, soft_wrap=True, quiet=not main_process())
        self.check()
        train_part, validation = (splits.train, splits.dev) if splits else self.open()
        for part in (train_part, validation):
            console.print(part.report, markup=False, highlight=False)
        self.task.writes.check_examples(train_part, validation, self.task.reads.name)
        for line in self.recipe.reads.advice(train_part, self.recipe.start is not None):
            console.print(line, markup=False, highlight=False)
        processor = self.processor_of(train_part)
        model = self.model_of(processor.sizes())
        skill = skill_class(self.task, processor)(self.task, self.recipe, model, processor, self.description(model))
        batches = skill.batches(train_part)
        for report in (processor.report, self.plan.report, getattr(batches, "report", "")):
            if report:
                console.print(report, markup=False, highlight=False)
        console.print(summary(self.recipe.model, model, processor.summary), markup=False, highlight=False)
        self._try_first_batch(model, batches)
        self._try_exports(skill)
        parts = () if self.recipe.examples.data else (train_part, validation)
        by_name: dict[str, Any] = {f"examples{CONTENT}{part.name})": part.digest() for part in parts}
        if self.recipe.examples.data and not self.recipe.examples.validation and splits is None:
            by_name[HELD_OUT] = held_out_every(len(train_part) + len(validation))
            by_name[HOLD_OUT_RULE] = RULE
        self._train(skill, batches, validation, by_name, console, callbacks)
        skill.folder, skill.learned_from = self.recipe.out, (train_part, validation)
        self._tell_worth(skill, validation, console)
        self._export(console)
        return skill

    # -- before the training

    def check(self) -> None:
        """Report what cannot work before any data is read, which may take long. Data sets of the hub are fetched."""
        recipe = self.recipe
        for part in (recipe.examples, recipe.reads, recipe.writes, recipe.objective, recipe.training):
            if hasattr(part, "check"):
                part.check()
        if recipe.lora is not None and recipe.start is None:
            raise UserError("lora adapts trained weights: name them with --from, or train all weights without it")
        if hasattr(recipe.objective, "check_training"):
            recipe.objective.check_training(recipe.training)
        if recipe.start is None and self.task.start.missing:
            raise UserError(self.task.start.missing)
        if recipe.start is not None:
            self.task.start.check(self.plan)
        languages = getattr(recipe.examples, "languages", None)
        data, validation = (
            local_paths(paths, self.task.name, languages)
            for paths in (recipe.examples.data, recipe.examples.validation)
        )
        data, validation = self.task.parts_to_learn(data, validation)
        recipe.examples = replace(recipe.examples, data=data, validation=validation)
        for path in (*data, *validation):
            check_utf8(path)
            check_readable_again(path)
        check_folder(recipe.out, WRITTEN)
        begun = any((recipe.out / CHECKPOINTS).glob("step-*.safetensors"))
        if recipe.out == Path() and not begun:
            raise UserError("out is empty, or the current folder: name one for the training alone")
        device = choose_device(recipe.training.device)
        with without_memory():
            model = self.build(**dict.fromkeys(models.sizes_of_data(self.plan.preset.family), 1))
        check_memory(model, device, recipe.training.parallel)
        if not begun:
            recipe.reads.check_training(model, recipe.examples.batch)
        if begun:
            Checkpoints(recipe.out / CHECKPOINTS, recipe.training, self.identity()).check()

    def open(self) -> tuple[Dataset[Any], Dataset[Any]]:
        """What to learn from and what to validate on. Raises UserError where there is nothing."""
        return open_examples(self.task, self.recipe, self._read_once)

    def _read_once(self, paths: Sequence[Path]) -> Dataset[Any]:
        """A user's examples, which were read for their digest and are not read a second time."""
        return self._read.pop(paths, None) or self.task.read_files(paths, self.recipe)

    def processor_of(self, train_part: Dataset[Any]) -> Processor:
        """The forms of the recipe, with what they learn from examples."""
        recipe, architecture = self.recipe, self.recipe.architecture
        reads = copy(recipe.reads)
        if recipe.start is None:
            reads = reads.learn(train_part, architecture)
            return Processor(reads, recipe.writes.learn(train_part, reads, architecture))
        start, kind, trained = self.task.start, ProcessorOf(self.task), None
        if (whole := start.processor(self.plan, kind)) is not None:
            reads, writes = reads.extend(whole.reads, train_part), recipe.writes.extend(whole.writes, train_part)
        else:
            if (tokenizer := start.tokenizer(self.plan)) is not None:
                reads.tokenizer = tokenizer
            reads, trained = reads.learn(train_part, architecture), start.forms(self.plan, kind)
            reads = reads if trained is None else reads.follow(trained.reads)
            writes = recipe.writes.learn(train_part, reads, architecture)
        return Processor(reads, self.plan.take_classes(writes, trained))

    # -- the model

    def build(self, **sizes: int) -> nn.Module:
        """The model with the random weights of the recipe's seed, or with trained weights; the data decided `sizes`."""
        recipe = self.recipe
        if recipe.start is not None:
            for name, size in self.task.start.sizes(self.plan).items():
                sizes[name] = max(size, sizes.get(name, size))
        torch.manual_seed(recipe.training.seed)
        model = models.build(self.plan.preset.family, replace(recipe.architecture, **sizes))
        freeze(model, recipe.training)
        if recipe.start is not None and next(model.parameters()).device.type != "meta":
            self.task.start.fill(self.plan, model)
        if recipe.lora is not None:
            place = self.task.start.trained_place(self.plan, model)
            add_low_rank(model.get_submodule(place), recipe.lora, recipe.lora_layers)
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(parameter.requires_grad or name.startswith(HEADS))
        return model

    def model_of(self, sizes: Mapping[str, int]) -> nn.Module:
        """The model with the sizes of the data that its config has fields for, in the fastest layout for images."""
        known = {part.name for part in fields(self.recipe.architecture)}
        model = self.build(**{name: size for name, size in sizes.items() if name in known})
        return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def finish(self, model: nn.Module) -> None:
        """Merge low-rank updates, so that the folder holds a plain model; keep them in a file of their own too."""
        updates = low_rank_updates(model)
        if updates and main_process():
            write_tensors(self.recipe.out / ADAPTER, updates)
        merge_low_rank(model)
        model.eval()

    # -- the training

    def description(self, model: nn.Module) -> dict[str, Any]:
        """What `config.json` says of the trained model."""
        config: Any = model.config
        family = self.plan.preset.family
        return asdict(RunConfig(self.task.name, family, asdict(config), self.recipe.as_json(), self.contents()))

    def contents(self) -> dict[str, str]:
        """Digests of all that is learned from, as it is now, and of the weights to begin from."""
        if self._digests is None and self.task.reads.by_files:
            paths = (*self.recipe.examples.data, *self.recipe.examples.validation)
            self._digests = {str(path): digest(path) for path in paths if path.is_file() or path.is_dir()}
        if self._digests is None:
            given = (self.recipe.examples.data, self.recipe.examples.validation)
            parts = [paths for paths in given if paths and all(map(is_there, paths))]
            self._read.update((paths, self.task.read_files(paths, self.recipe)) for paths in parts)
            self._digests = {", ".join(map(str, paths)): self._read[paths].digest() for paths in parts}
        start = {} if self.recipe.start is None else {str(self.recipe.start): self.plan.weights.digest}
        own: dict[str, str] = getattr(self.recipe.objective, "contents", dict)()
        return self._digests | start | own

    def identity(self) -> dict[str, Any]:
        """What must be the same when a training is resumed, beside the settings of training."""
        values = self.recipe.as_json()
        names = ("examples", "reads", "writes", "objective", "model", "architecture")
        values["examples"].pop("allow_outside", None)  # changes nothing of what is learned
        chosen = {name: values[name] for name in names}
        contents = {f"examples{CONTENT}{path})": digest for path, digest in self.contents().items()}
        start = {} if self.recipe.start is None else {"start": str(self.recipe.start)}
        lora = {} if self.recipe.lora is None else {"lora": self.recipe.lora, "lora_layers": values["lora_layers"]}
        return {"task": self.task.name, **chosen, **contents, **start, **lora}

    def _try_first_batch(self, model: nn.Module, batches: Batches) -> None:
        """Raise UserError before the training where the model cannot read such examples."""
        with torch.no_grad():
            for batch in batches.epoch(0):
                model.eval()(**batch.select(slice(0, 1)).inputs)
                break
        model.train()

    def _try_exports(self, skill: Skill) -> None:
        """Raise UserError before the training for a layout that the trained model could not be written in. Of several
        processes the first one tries; the others end with it."""
        for way in self.recipe.export if main_process() else ():
            from foveate.tasks.export.ways import try_export

            try_export(skill, way)

    def _tell_worth(self, skill: Skill, validation: Dataset[Any], console: Console) -> None:
        """Say whether a model of labels is better than simple ways to find them."""
        writes: Any = skill.processor.writes
        options = writes.measure_options()
        if not main_process() or not isinstance(writes, Balanced):
            return
        examples = [*validation.some(self.recipe.examples.validation_examples)]
        try:
            line = skill.worth(examples, options)
        except UserError as error:  # such as data that are not there any more
            line = f"not compared with simple baselines: {error}"
        if line:
            console.print(line, markup=False, highlight=False)

    def _export(self, console: Console) -> None:
        """Write the trained model in the layouts of the recipe, beside what `foveate.load` reads."""
        for way in self.recipe.export if main_process() else ():
            from foveate.tasks.export.ways import export_run

            line = export_run(load(self.recipe.out), self.recipe.out, way)
            console.print(line, markup=False, highlight=False)

    def _train(
        self,
        skill: Skill,
        batches: Batches,
        validation: Dataset[Any],
        by_name: Mapping[str, Any],
        console: Console,
        callbacks: Sequence[Callback],
    ) -> None:
        recipe = self.recipe

        def begin() -> None:
            if recipe.lora is None:  # updates are merged in the end
                skill.save_unfinished(recipe.out)

        def end() -> None:
            self.finish(skill.model)
            skill.settle()
            if main_process():
                skill.save(recipe.out)

        train_model(
            skill.model,
            batches,
            skill.objective(),
            recipe.training,
            recipe.out,
            skill.validation(validation, console),
            identity=self.identity() | dict(by_name),
            console=console,
            unit=self.task.unit,
            callbacks=callbacks,
            begin=begin,
            end=end,
        )


def summary(preset: str, model: nn.Module, learned: str) -> str:
    """One line for the user: what is about to be trained."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    of_them = f" ({trained:,} of them trained)" if trained < parameters else ""
    return f"{preset}: {parameters:,} parameters{of_them}, {learned}"
