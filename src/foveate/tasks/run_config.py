"""The folder of a run: what it says of itself, and the model in it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from foveate import models, run_dir
from foveate.config import from_dict
from foveate.data.text.files import digest
from foveate.errors import UserError
from foveate.nn import TooManyWeightsError, skip_init
from foveate.training.folder_lock import METRICS
from foveate.training.hardware import choose_device

ADAPTER = "adapter.safetensors"
"""The low-rank updates of a run, beside the weights that they are merged into."""

WRITTEN = (
    *(METRICS, run_dir.WEIGHTS, "tokenizer.json", "source_tokenizer.json", "target_tokenizer.json"),
    *(ADAPTER, "conditions.json", "labels.json", "lexicon.json", "processor.json", "rules.json"),
)
"""What is written into the folder of a training, whichever its task is."""


@dataclass
class RunConfig:
    """What `config.json` of a run folder says: enough to build the model again, and to train it again."""

    task: str
    family: str
    architecture: dict[str, Any]
    recipe: dict[str, Any]
    contents: dict[str, str] = field(default_factory=dict)
    """A digest of each file or folder that the text to learn from and to validate on was read from."""


@dataclass
class OpenRun:
    """A run folder with its model, in evaluation mode on its device."""

    files: run_dir.RunDir
    description: RunConfig
    model: nn.Module

    @property
    def where(self) -> str:
        """The place of the description, for messages."""
        return str(self.files.folder / run_dir.CONFIG)


def describe(found: run_dir.RunDir) -> RunConfig:
    """What a folder says of itself. Raises UserError where that is damaged."""
    return from_dict(RunConfig, found.description, str(found.folder / run_dir.CONFIG))


def recipe_value(description: dict[str, Any], *names: str, kind: Any = object) -> Any:
    """What the recipe in a folder's description says under these names, a value of this kind.

    Raises UserError where somebody took it out, or put something else in.
    """
    value = description["recipe"]
    for name in names:
        if not isinstance(value, dict) or name not in value:
            raise UserError(f"{run_dir.CONFIG} has no recipe.{'.'.join(names)}: what was trained, and on what, is lost")
        value = value[name]
    if not isinstance(value, kind):
        raise UserError(f"{run_dir.CONFIG} has the recipe.{'.'.join(names)} {value!r}, which cannot be")
    return value


def check_unchanged(description: dict[str, Any]) -> None:
    """Raise UserError where the text that a model was trained on is not there any more as it was."""
    learned = {str(Path(name)) for name in recipe_value(description, "examples", "data", kind=list | tuple)}
    for name, before in description.get("contents", {}).items():
        path = Path(name)
        if name in learned and (path.is_file() or path.is_dir()) and digest(path) != before:
            raise UserError(f"{path} is not what the model was trained on: it changed, or is another of this name")


def load_run(folder: Path | str, device: str) -> OpenRun:
    """The model of a run folder, on a device ("auto": a GPU if there is one).

    Raises UserError, one line, for whatever is missing or damaged.
    """
    found = run_dir.load(folder)
    description = describe(found)
    kind = models.config_class(description.family)
    config = from_dict(kind, description.architecture, str(found.folder / run_dir.CONFIG))
    try:
        with skip_init(at_most=2 * found.numbers):
            model = models.build(description.family, config)
    except TooManyWeightsError:
        raise UserError(
            f"{found.folder / run_dir.CONFIG} tells of a far larger model than {run_dir.WEIGHTS} holds: "
            f"probably they are of two different models"
        ) from None
    found.fill(model)
    return OpenRun(found, description, model.to(choose_device(device)).eval())
