"""What a task is: a value that names its parts.

A page of a task says what is read, what is written, and how models learn that. `classify-image` is the one to read
first. `foveate.tasks.TASKS` lists the pages.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro

from foveate import models
from foveate.config import from_dict
from foveate.data import sources
from foveate.data.dataset import Dataset
from foveate.data.folders import allowing_outside
from foveate.data.layout import FOLDERS, TABLES, DataLayout, part_to_measure, parts_to_learn, suggest_layouts
from foveate.data.sources.splits import Splits
from foveate.data.table import naming_columns
from foveate.data.table.formats import TABLE_ENDINGS
from foveate.data.text.files import as_paths
from foveate.errors import UserError
from foveate.forms.form import InputForm, OutputForm, setting_names
from foveate.models.idle_settings import changed_fields, check_settings_act
from foveate.tasks.examples.data_options import FEWEST, held_out_every
from foveate.tasks.recipe import PARTS, Examples, ExportFormat, Recipe, TableExamples, distribute, plain_values
from foveate.tasks.start.parts import Body, InitFrom
from foveate.tasks.start.plan import settle
from foveate.tasks.upgrade import upgrade_recipe
from foveate.training import Training

CONFIG_HELP = """

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    reads, writes, training, architecture, ...); a flag counts more than the file.
    """


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a task is made of."""

    name: str
    about: str
    """What it trains, for the help."""
    families: tuple[str, ...]
    """The families of models that can be trained for it."""
    head: str | None = None
    """What these predict, where a family's `head` chooses."""
    also: str = ""
    """What the field calls the task, where it has another name."""
    reads: InputForm
    writes: OutputForm
    objective: Any
    """What is minimised: a callable dataclass, whose fields are settings."""
    read: Callable[[Sequence[Path], Recipe], Dataset[Any]]
    """Reads a user's files."""
    arrange: Callable[[Any, Recipe], Dataset[Any]] | None = None
    """Makes examples of a part of a source, where a source holds something else, such as prose."""
    forms_for: Callable[[Any, Any, Any], tuple[Any, Any]] | None = None
    """The forms that are read and written by a model with a config, where they are others than these two: of the same
    settings."""
    generate: Callable[[Recipe], Splits[Any] | None] | None = None
    """Makes examples that are in no file and no source, such as levels of a world, where the settings ask for them."""
    files: str
    """What --data takes, in messages: "FOLDER"."""
    layout: str = "Your own data."
    """What --data takes, for the help."""
    layouts: Sequence[DataLayout[Any]] = ()
    """The layouts of public data that --data takes too."""
    lists: tuple[str, ...] = ()
    """How the names of files end that list examples, beside those of tables: a folder of such files stands for them."""
    examples: Examples = field(default_factory=Examples)
    model: str
    """The preset to begin from, where none is named."""
    training: Training = field(default_factory=Training)
    """How models are trained, where the preset does not know better."""
    architecture: Mapping[str, Any] = field(default_factory=dict)
    """The fields of a model's config that the task decides."""
    start: InitFrom = field(default_factory=Body)
    """What is taken of trained weights."""
    usual_start: str | None = None
    """Weights by name that `foveate train` begins from where texts are few and neither weights nor a model are named:
    see `start/usual.py`."""
    unit: str = "tokens"
    """What has a label, for people who watch the training."""
    skill: Callable[[], type[Any]] | None = None
    """Gives the subclass of `Skill` of a task that is irregular."""

    def presets(self) -> dict[str, models.Preset]:
        """The presets that the task can train."""
        return models.presets(self.families, self.head)

    def preset(self, model: str) -> models.Preset:
        """A preset by name. Raises UserError where there is none, or it is for another task."""
        preset, known = models.preset(model), self.presets()
        if model not in known:
            raise UserError(f"{model} is a model for another task; the task {self.name} takes {', '.join(known)}")
        return preset

    def read_files(self, paths: Sequence[Path], recipe: Recipe) -> Dataset[Any]:
        """Reads a user's files, images as the form says; those outside a table's folder if the recipe allows it."""
        reads: InputForm = recipe.reads
        with allowing_outside(getattr(recipe.examples, "allow_outside", False)):
            return reads.of_files(self.read_named(paths, recipe))

    def read_named(self, paths: Sequence[Path], recipe: Recipe) -> Dataset[Any]:
        """Reads a user's files, whose tables call columns as the recipe says."""
        several = getattr(recipe.writes, "has_several", False)
        with naming_columns(getattr(recipe.examples, "columns", ()), several):
            try:
                return self.read(paths, recipe)
            except UserError as error:
                if nearest := suggest_layouts(paths, self.layouts):
                    raise UserError(f"{error}{nearest}") from None
                raise

    def open_source(self, name: str, recipe: Recipe) -> Splits[Any]:
        """The data by name."""
        source, target = getattr(recipe.examples, "languages", ("en", "fr"))
        splits = sources.open_source(name, source, target, task=self.name)
        if self.arrange is None:
            return splits
        return Splits(*(self.arrange(part, recipe) for part in (splits.train, splits.dev, splits.test)))

    def hold_out(self, examples: Dataset[Any], writes: OutputForm | None = None) -> tuple[Dataset[Any], Dataset[Any]]:
        """What to learn from of a user's examples, and what to validate on; `writes` has the settings of a recipe.
        Raises UserError where they are too few."""
        every, writes = held_out_every(len(examples)), writes or self.writes
        return examples.hold_out(every, self.reads.ties, writes.kinds, writes.rare_kinds)

    def recipe(self, **settings: Any) -> Recipe:
        """A recipe of the task. A setting may be a field of any part: `recipe(data="images", size=32, steps=300)`.

        Raises UserError, with the nearest names, for a setting that does not exist.
        """
        for name in {"data", "validation"} & settings.keys():
            settings[name] = as_paths(settings[name])
        direct = {name: settings.pop(name) for name in PARTS if is_dataclass(settings.get(name))}
        known = {part: _names(getattr(self, part)) for part in PARTS}
        others = {part.name for part in fields(Recipe)} - {"task", *PARTS}
        found = distribute(known, settings, others)
        for part in PARTS:
            base = direct.get(part, getattr(self, part))
            changes = found.pop(part, {})
            if part == "training" and part not in direct:
                if changes:
                    found[part] = lambda usual, changes=changes: replace(usual, **changes)
                continue
            found[part] = changed(base, changes)
        return self._settle(found)

    def from_json(self, values: Mapping[str, Any], where: str) -> Recipe:
        """A recipe from plain values; what they leave out is as the task and the preset have it.

        Raises UserError with the nearest names for a field that does not exist.
        """
        values = upgrade_recipe(dict(values), {part: _names(getattr(self, part)) for part in PARTS})
        architecture = values.pop("architecture", None)
        if architecture is not None and not isinstance(architecture, Mapping):
            raise UserError(f"{where}: architecture is {architecture!r}, but must be a table of fields")
        preset = self.preset(values["model"]) if isinstance(values.get("model"), str) else self.preset(self.model)
        usual = {part: getattr(self, part) for part in PARTS} | {"training": self.usual_training(preset)}
        for part, own in usual.items():
            if isinstance(given := values.get(part), dict):
                values[part] = _merge(_settings(own), given)
        shape = self._plain_type(usual)
        plain = from_dict(shape, values, where)
        found = {part.name: getattr(plain, part.name) for part in fields(plain)}
        if not isinstance(values.get("training"), dict):
            found.pop("training")
        return self._settle({**found, "architecture": architecture})

    def _plain_type(self, usual: Mapping[str, Any]) -> type[Any]:
        """A dataclass with the fields of a recipe of this task, to check plain values by."""
        rows: list[Any] = [
            (part, type(own), field(default_factory=partial(replace, own))) for part, own in usual.items()
        ]
        rows += [
            ("architecture", Any, field(default=None)),  # checked against the preset's own fields
            ("model", str, field(default=self.model)),
            ("out", Path, field(default=self.out)),
            ("start", Path | None, field(default=None)),
            ("lora", int | None, field(default=None)),
            ("lora_layers", tuple[str, ...], field(default=_default("lora_layers"))),
            ("export", tuple[ExportFormat, ...], field(default=())),
        ]
        return make_dataclass("Settings", rows)

    @property
    def out(self) -> Path:
        """Where models are saved, unless another folder is named."""
        return Path("runs") / self.name

    def usual_training(self, preset: models.Preset) -> Training:
        """How a preset is trained for the task."""
        known = {part.name for part in fields(Training)}
        return replace(self.training, **{name: value for name, value in preset.training.items() if name in known})

    def _settle(self, found: dict[str, Any]) -> Recipe:
        """A recipe whose sizes are all chosen, by the preset and by trained weights."""
        examples: Examples = found["examples"]
        found["examples"] = replace(examples, data=as_paths(examples.data), validation=as_paths(examples.validation))
        values = {"model": self.model, "out": self.out, "start": None, "architecture": None, **found}
        for name in ("out", "start"):
            values[name] = Path(values[name]) if values[name] is not None else None
        return settle(self, values)

    @property
    def all_layouts(self) -> tuple[DataLayout[Any], ...]:
        """The layouts of --data: those of the task, and those that name parts."""
        return (*self.layouts, FOLDERS, *([TABLES] if self._reads_tables else []))

    def parts_to_learn(self, data: Sequence[Path], validation: Sequence[Path]) -> tuple[tuple[Path, ...], ...]:
        """What to learn from and to validate on, of what a user names. Raises UserError for no part to learn from."""
        return parts_to_learn(data, validation, self.all_layouts, self._lists)

    def part_to_measure(self, data: Sequence[Path]) -> tuple[Path, ...]:
        """What to measure on, of what a user names."""
        return part_to_measure(data, self.all_layouts, self._lists)

    @property
    def _lists(self) -> tuple[str, ...]:
        return (*self.lists, *(TABLE_ENDINGS if self._reads_tables else ()))

    @property
    def _reads_tables(self) -> bool:
        return isinstance(self.examples, TableExamples)

    @property
    def data_help(self) -> str:
        """How a user's own data must look, for the help."""
        tables = " CSV, JSON and Parquet with named columns are read too." if self._reads_tables else ""
        names = ", ".join(layout.name for layout in self.layouts)
        return f"{self.layout}{tables}{f' Also the layouts of {names}.' if names else ''}"

    def as_flags(self, recipe: Recipe) -> Any:
        """A recipe as a dataclass of its own, from which the flags of `foveate train` and their help are derived."""
        family = models.config_class(self.preset(recipe.model).family)
        data = Annotated[tuple[Path, ...], tyro.conf.arg(help=self.data_help)]
        examples = make_dataclass("Examples", [("data", data, field(default=()))], bases=(type(recipe.examples),))
        start = Annotated[Path | None, tyro.conf.arg(name="from", help=self.start.help)]
        kinds: Any = (examples, *(type(getattr(recipe, part)) for part in ("reads", "writes", "objective")), family)
        kind: Any = make_dataclass(
            "Flags",
            [("start", start, field(default=None))],
            bases=(Recipe[kinds],),
            kw_only=True,
        )
        kind.__doc__ = f"{self.about}{CONFIG_HELP}"
        return kind(**{**_values(recipe), "examples": examples(**_values(recipe.examples))})

    def of_flags(self, found: Any, default: Recipe) -> Recipe:
        """The recipe that flags say. Raises UserError for a changed field of the architecture that nothing reads."""
        check_settings_act(found.architecture, changed_fields(found.architecture, default.architecture))
        examples = type(self.examples)(**_values(found.examples))
        return Recipe(**{**{part.name: getattr(found, part.name) for part in fields(Recipe)}, "examples": examples})


def open_examples(
    task: Task, recipe: Recipe, read: Callable[[Sequence[Path]], Dataset[Any]] | None = None
) -> tuple[Dataset[Any], Dataset[Any]]:
    """What a recipe says to learn from and to validate on; `read` opens a user's files.

    Raises UserError where there is nothing.
    """
    read = read or (lambda paths: task.read_files(paths, recipe))
    if task.generate is not None and (made := task.generate(recipe)) is not None:
        return made.train, made.dev
    chosen, files = recipe.examples, task.files
    validation = read(chosen.validation) if chosen.validation else None
    if chosen.source is not None:
        splits = task.open_source(chosen.source, recipe)
        return splits.train, validation or splits.dev
    if not chosen.data:
        raise UserError(f"nothing to learn from: name a source (see `foveate data`) or give --data {files}")
    found = read(chosen.data)
    if validation is not None:
        return found, validation
    if len(found) < FEWEST:
        raise UserError(
            f"{found.name} has {len(found)} {found.unit}, too few to hold some out; give --validation {files}"
        )
    return task.hold_out(found, recipe.writes)


def changed(base: Any, changes: Mapping[str, Any]) -> Any:
    """A part of a recipe with other values of some fields."""
    return replace(base, **changes) if changes else replace(base)


def _names(part: Any) -> tuple[str, ...]:
    """The settings of a part of a recipe."""
    if isinstance(part, InputForm | OutputForm):
        return setting_names(type(part))
    return tuple(one.name for one in fields(part)) if is_dataclass(part) else ()


def _settings(part: Any) -> dict[str, Any]:
    values: dict[str, Any] = plain_values(part)
    return values


def _merge(usual: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Two trees of tables as one; what is given counts more."""
    inner = {
        name: _merge(usual[name], value)
        for name, value in given.items()
        if isinstance(value, Mapping) and isinstance(usual.get(name), Mapping)
    }
    return {**usual, **given, **inner}


def _default(name: str) -> Any:
    return next(part.default for part in fields(Recipe) if part.name == name)


def _values(part: Any) -> dict[str, Any]:
    return {one.name: getattr(part, one.name) for one in fields(part)}


NAMED = 3
"""How many presets that attend are named, at most, where a model does not."""


def nothing_to_see(task: Task, model: str, name: str) -> UserError:
    """The error for a model, of this preset and name, that does not attend; it names presets of the task that do, first
    those of its family."""
    known = task.presets()
    family = known[model].family if model in known else ""
    attending = (one for one in known.values() if one.attends)
    nearest = sorted(attending, key=lambda one: 0 if one.family == family else one.parameters)
    named = [preset.name for preset in nearest[:NAMED]]
    hint = f"; presets of {task.name} that do: {', '.join(named)}" if named else ""
    return UserError(f"{name} does not attend: there is nothing to see{hint}")
