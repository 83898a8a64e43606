"""The settings of a training: one plain dataclass for every task. What is done with them is in `learning.py`."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal

import tyro
from typing_extensions import TypeVar

from foveate.data.table import check_columns
from foveate.errors import UserError, at_least, unknown
from foveate.files import as_read
from foveate.forms.form import Form, setting_names
from foveate.training import Training

ExportFormat = Literal["hf", "onnx", "gguf", "ctranslate2"]
"""The layouts of other libraries that models of any task may be written in: see `tasks/export/ways.py`."""

E = TypeVar("E", default=Any)
R = TypeVar("R", default=Any)
W = TypeVar("W", default=Any)
O = TypeVar("O", default=Any)  # noqa: E741
A = TypeVar("A", default=Any)


@dataclass
class Examples:
    """Which examples to learn from."""

    source: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")] = None
    """Data by name, instead of your own: see `foveate data`."""
    data: tuple[Path, ...] = ()
    """Your own data."""
    validation: tuple[Path, ...] = ()
    """Data to validate on, in the same form. Without it, one example in twenty is held out, or more of few data."""
    batch: int = 128
    """Size of a batch, padding included: examples, tokens or frames, whatever the task counts."""
    validation_examples: int = 2000
    """Examples that each validation during training decides about."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        if self.source is not None and self.data:
            raise UserError(f"both the source '{self.source}' and files are given; choose one")
        for name in ("batch", "validation_examples"):
            at_least(1, name, getattr(self, name))


@dataclass
class FileExamples(Examples):
    """Which examples to learn from, where tables may name files of images, sounds or maps."""

    allow_outside: bool = False
    """Read files too that a table names outside its own folder."""


@dataclass
class TableExamples(Examples):
    """Which examples to learn from, where these are the rows of a table."""

    columns: Annotated[tuple[str, ...], tyro.conf.arg(metavar="COLUMN=TITLE ...")] = ()
    """What your table calls our columns, where it has other titles: text=review label=stars."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        super().check()
        check_columns(self.columns)


@dataclass
class FileTable(FileExamples, TableExamples):
    """Which examples to learn from, where these are the rows of a table that names files."""


@dataclass
class PairExamples(TableExamples):
    """Which pairs of texts to learn from."""

    from_language: str = "en"
    """Language to translate from, for text by name and programs' translations."""
    to_language: Annotated[str, tyro.conf.arg(name="to")] = "fr"
    """Language to translate to, by its code, such as fr."""

    @property
    def languages(self) -> tuple[str, str]:
        """Both languages."""
        return self.from_language, self.to_language


@dataclass(kw_only=True)
class Recipe(Generic[E, R, W, O, A]):
    """The settings of a training. `Task.recipe` makes one; flags and config files are derived from it."""

    task: Annotated[str, tyro.conf.Suppress]
    """The name of the task."""
    examples: Annotated[E, tyro.conf.arg(name="")]
    """What to learn from."""
    reads: Annotated[R, tyro.conf.arg(name="")]
    """The form that is read."""
    writes: Annotated[W, tyro.conf.arg(name="")]
    """The form that is written."""
    objective: Annotated[O, tyro.conf.arg(name="")]
    """What is minimised."""
    model: str
    """The preset to begin from: see `foveate models TASK`."""
    out: Path
    """Folder for the trained model; a training that it holds is resumed."""
    start: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Trained weights to begin from."""
    lora: int | None = None
    """Leave the trained weights as they are, and train updates of this rank and the head alone (LoRA). In the end the
    updates are merged into the weights; adapter.safetensors has them too."""
    lora_layers: tuple[str, ...] = ("self.query", "self.value")
    """The linear layers that get an update: the ends of their places in the model."""
    export: tuple[ExportFormat, ...] = ()
    """Write the trained model for other libraries too, as `foveate export --to` does: into the folder export of the
    run. What cannot be written so is refused before the training."""
    training: Annotated[Training, tyro.conf.arg(name="")] = field(default_factory=Training)
    architecture: A
    """The preset's sizes, each of which can be changed."""

    def as_json(self) -> dict[str, Any]:
        """The recipe as `config.json` keeps it; `Task.from_json` reads it back."""
        parts = {part.name: plain_values(getattr(self, part.name)) for part in fields(self) if part.name != "task"}
        return dict(as_read(parts))


def plain_values(value: Any) -> Any:
    """A setting as plain values; of a form its settings alone."""
    if isinstance(value, Form):
        return {name: plain_values(getattr(value, name)) for name in setting_names(type(value))}
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


PARTS = ("examples", "reads", "writes", "objective", "training")
"""The parts of a recipe whose fields can be named without naming the part."""


def distribute(parts: Mapping[str, Iterable[str]], given: dict[str, Any], others: Iterable[str]) -> dict[str, Any]:
    """The given settings, each in the part of a recipe that has a field of its name.

    Raises UserError, with the nearest names, for a setting that no part has.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        part = next((part for part, names in parts.items() if name in set(names)), None)
        if part is not None:
            found.setdefault(part, {})[name] = value
        elif name in set(others):
            found[name] = value
        else:
            raise unknown("setting", name, [*others, *(name for names in parts.values() for name in names)])
    return found
