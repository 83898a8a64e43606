"""What the recipes of all tasks have: a preset and its sizes, how to train, and where to."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar

import torch
import tyro
from rich.console import Console
from torch import nn

from foveate import models
from foveate.bundle import CHECKPOINTS
from foveate.config import from_dict
from foveate.data.text.files import as_paths, check_readable_again, digest
from foveate.errors import UserError, at_least
from foveate.nn import longest_sequence
from foveate.tasks import TASKS
from foveate.tasks.examples.hub_data import local_paths
from foveate.tasks.run_folder import WRITTEN, Description
from foveate.training import Training as PlainTraining
from foveate.training import main_process
from foveate.training.checkpoints import Checkpoints
from foveate.training.folder_lock import check_folder
from foveate.training.hardware import choose_device
from foveate.training.identity import CONTENT
from foveate.training.parallel.strategy import check_memory
from foveate.training.rates import freeze

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    Architecture = TypeVarWithDefault("Architecture", default=Any)  # so that `Translate(...)` needs no annotation
else:
    Architecture = TypeVar("Architecture")

Kind = TypeVar("Kind", bound="Recipe")


@dataclass
class Training(PlainTraining):
    """How to train. Training ends at the first of the limits `steps`, `epochs` and `minutes`; without one, the size of
    the data decides (docs/small-data.md). A step is one update of the weights."""

    label_smoothing: float = 0.1
    """Share of the target probability that is distributed evenly over the vocabulary."""
    choice_weight: float = 0.1
    """Hard attention: weight of the REINFORCE loss. A larger weight learns faster, but its gradient is noisier."""
    entropy_bonus: float = 0.001
    """Hard attention: weight of the entropy of choices, against early decisions."""

    def check(self) -> None:
        super().check()
        for name in ("choice_weight", "entropy_bonus"):
            at_least(0, name, getattr(self, name))
        if not 0 <= self.label_smoothing < 1:
            raise UserError(f"label_smoothing is {self.label_smoothing}, but must be at least 0 and below 1")


AS_USUAL = Training()
"""Stands for the training that is usual for a task and a preset."""


@dataclass(kw_only=True)
class Recipe(Generic[Architecture]):
    """The base of all recipes. Each gives `model`, `out` and `examples` a default, and `examples` its own type.

    The sizes that data decides, such as a vocabulary's, are 0 in `architecture` until `build` is told them.
    """

    task: ClassVar[str]
    """Its name in `foveate.tasks.TASKS`."""
    families: ClassVar[tuple[str, ...]]
    """The families of models that can be trained so: those of its row in `foveate.tasks.TASKS`."""
    head: ClassVar[str | None] = None
    """What these predict, where they can predict several things; likewise."""
    num_special_tokens: ClassVar[int] = 1
    """How many tokens a model reads beside those of a text: a start or an end."""
    unit: ClassVar[str] = "tokens"
    """What has a label, for people who watch the training."""
    default_training: ClassVar[Training] = Training()
    """How it is trained, where the preset does not know better."""

    model: str
    """The preset to begin from: see `foveate models`."""
    out: Path
    """Folder for the trained model; a training that it holds is resumed."""
    training: Annotated[Training, tyro.conf.arg(name="")] = field(default_factory=lambda: AS_USUAL)
    architecture: Architecture = None  # type: ignore[assignment]
    """The preset's sizes, each of which can be changed; in Python, also a mapping of the fields to change."""
    examples: Any
    """What to learn from; its `check` raises UserError for a value that cannot be."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.__dict__.get("task") in TASKS:
            cls.families, cls.head = TASKS[cls.task].families, TASKS[cls.task].head

    def __post_init__(self) -> None:
        preset = self.preset
        given: Any = self.architecture
        if given is None or isinstance(given, Mapping):
            left_open = dict.fromkeys(models.sizes_of_data(preset.family, required=True), 0)
            kind = models.config_class(preset.family)
            head = {"head": self.head} if self.head is not None and hasattr(kind, "head") else {}
            self.architecture = from_dict(kind, {**left_open, **preset.values, **head, **(given or {})}, self.model)
        predicts = getattr(self.architecture, "head", self.head)
        if self.head is not None and predicts != self.head:
            raise UserError(f"architecture.head is {predicts!r}, but the task {self.task} needs {self.head!r}")
        if self.training is AS_USUAL:
            self.training = replace(self.default_training, **preset.training)
        if type(self.training) is PlainTraining:
            self.training = Training(**vars(self.training))
        self.examples = replace(
            self.examples, data=as_paths(self.examples.data), validation=as_paths(self.examples.validation)
        )

    @classmethod
    def presets(cls) -> dict[str, models.Preset]:
        """The presets that this task can train."""
        return models.presets(cls.families, cls.head)

    @property
    def preset(self) -> models.Preset:
        """The preset that `model` names. Raises UserError where there is none, or it is for another task."""
        preset, known = models.preset(self.model), self.presets()
        if self.model not in known:
            fitting = ", ".join(known)
            raise UserError(f"{self.model} is a model for another task; the task {self.task} takes {fitting}")
        return preset

    def check(self) -> None:
        """Tell what cannot work before any data is read, which may take long. Data sets of the hub are fetched."""
        for part in vars(self).values():
            if hasattr(part, "check"):
                part.check()
        languages = getattr(self.examples, "languages", None)
        data, validation = (
            local_paths(paths, self.task, languages) for paths in (self.examples.data, self.examples.validation)
        )
        self.examples = replace(self.examples, data=data, validation=validation)
        for path in self._files:
            check_readable_again(path)
        check_folder(self.out, WRITTEN)
        begun = any((self.out / CHECKPOINTS).glob("step-*.safetensors"))
        if self.out == Path() and not begun:
            raise UserError("out is empty, or the current folder: name one for the training alone")
        device = choose_device(self.training.device)
        with torch.device("meta"):
            model = self.build(**dict.fromkeys(models.sizes_of_data(self.preset.family), 1))
        check_memory(model, device, self.training.parallel)
        if begun:
            Checkpoints(self.out / CHECKPOINTS, self.training, self.identity()).check()
        else:
            self.check_length(model)

    def check_length(self, model: nn.Module) -> None:
        """Raise UserError where an example can be longer than what the model has positions for."""
        if self.examples.max_length + self.num_special_tokens > (most := longest_sequence(model)):
            raise UserError(
                f"max_length is {self.examples.max_length:,}, and a start or end token takes a place too, but the "
                f"model learns only {most:,} positions: raise architecture.max_length"
            )

    def build(self, **sizes: int) -> nn.Module:
        """The model with the random weights of the recipe's seed; `sizes` are those that the data decided."""
        architecture: Any = self.architecture
        torch.manual_seed(self.training.seed)
        model = models.build(self.preset.family, replace(architecture, **sizes))
        freeze(model, self.training)
        return model

    def console(self, given: Console | None) -> Console:
        """Where to tell what happens: the given one, or stderr; of several processes only the main one tells."""
        return given or Console(stderr=True, soft_wrap=True, quiet=not main_process())

    @property
    def usable_before_the_end(self) -> bool:
        """Whether the weights of a checkpoint are those of a model in use, which `finish` does not change."""
        return True

    def finish(self, model: nn.Module) -> None:
        """Prepare a trained model for answers, and for its folder."""
        model.eval()

    def summary(self, model: nn.Module, vocabulary: str) -> str:
        """One line for the user: what is about to be trained."""
        parameters = sum(parameter.numel() for parameter in model.parameters())
        trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
        of_them = f" ({trained:,} of them trained)" if trained < parameters else ""
        return f"{self.model}: {parameters:,} parameters{of_them}, {vocabulary}"

    def as_json(self) -> dict[str, Any]:
        """The recipe as `config.json` keeps it; `from_json` reads it back."""
        return json.loads(json.dumps(asdict(self), default=str))

    @classmethod
    def from_json(cls: type[Kind], values: dict[str, Any], where: str) -> Kind:
        """A recipe from plain values; what a table leaves out is as the task and the preset have it.

        Raises UserError with the nearest names for a field that does not exist.
        """
        values = dict(values)
        architecture = values.pop("architecture", None)
        if architecture is not None and not isinstance(architecture, Mapping):
            raise UserError(f"{where}: architecture is {architecture!r}, but must be a table of fields")
        kind: Any = cls
        usual = kind(model=values["model"]) if isinstance(values.get("model"), str) else kind()
        for name, given in values.items():
            if isinstance(given, dict) and is_dataclass(getattr(usual, name, None)):
                values[name] = asdict(getattr(usual, name)) | given
        return replace(from_dict(cls, values, where), architecture=architecture)

    def identity(self) -> dict[str, Any]:
        """What must be the same when a training is resumed, beside the settings of training."""
        chosen = {
            name: value for name, value in self.as_json().items() if name in ("examples", "model", "architecture")
        }
        contents = {f"examples{CONTENT}{path})": found for path, found in self.contents().items()}
        return {"task": self.task, **chosen, **contents}

    @property
    def _files(self) -> tuple[Path, ...]:
        return self.examples.data + self.examples.validation

    def contents(self) -> dict[str, str]:
        """Digests of all that is learned from."""
        return self.example_contents()

    def example_contents(self) -> dict[str, str]:
        """A digest of each file or folder of the text, as it is now."""
        return {str(path): digest(path) for path in self._files if path.is_file() or path.is_dir()}

    def description(self, model: nn.Module) -> dict[str, Any]:
        """What `config.json` says of the trained `model`."""
        config: Any = model.config
        return asdict(Description(self.task, self.preset.family, asdict(config), self.as_json(), self.contents()))
