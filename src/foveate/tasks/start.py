"""Trained weights to begin a training from: a run folder, a Hugging Face folder of a BERT, or weights by name."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import tyro
from torch import Tensor, nn

from foveate import bundle, models
from foveate.config import from_dict
from foveate.contracts import Tokenizer
from foveate.data.bert_tokenizer import BertTokenizer, load_text_tokenizer
from foveate.data.text_files import digest
from foveate.errors import UserError
from foveate.files import read_json
from foveate.interop.keys import bert
from foveate.interop.pretrained import locate
from foveate.interop.weight_files import weight_files
from foveate.models.vision.image_encoder import encoder_of
from foveate.nn import add_low_rank, low_rank_updates, merge_low_rank
from foveate.tasks.image_start import encoder_path, fill_image_encoder
from foveate.tasks.run_folder import describe
from foveate.tasks.start_parts import PARTS_OF, part_names
from foveate.tensor_files import read_tensors, write_tensors
from foveate.training import main_process

if TYPE_CHECKING:
    from foveate.tasks.recipe import Recipe

HEADS = ("head.", "output.")
"""What the names of a head's tensors begin with; all others are the body's."""


ADAPTER = "adapter.safetensors"
"""The low-rank updates of a run, beside the weights that they are merged into."""


@dataclass
class Start:
    """A trained body and the tokenizer that it reads with."""

    folder: Path
    family: str
    config: Any
    """The config of the trained model."""
    body: dict[str, Tensor] = field(repr=False)
    tokenizer: Tokenizer | None = field(repr=False)
    """None for a model that reads no text."""
    trained_as: str | None = None
    """The preset that a run began from; its sizes may have been changed."""
    head: dict[str, Tensor] = field(default_factory=dict, repr=False)
    """The tensors of a run's head, for a task that predicts the same."""

    @property
    def digest(self) -> str:
        """A few letters that are others for other weights."""
        return " ".join(map(digest, weight_files(self.folder)))

    def fill(self, model: nn.Module) -> None:
        """Give a model the trained body, or as many of its first layers as it has; its head stays as it is.

        Raises UserError where the body does not fit.
        """
        self._fill(model, [name for name in model.state_dict() if not name.startswith(HEADS)])

    def fill_parts(self, model: nn.Module, parts: tuple[str, ...]) -> None:
        """Give a model of another family what both have: the tensors whose names begin so.

        Raises UserError where they do not fit.
        """
        self._fill(model, part_names(model.state_dict(), parts, self.body))

    def _fill(self, model: nn.Module, names: Sequence[str]) -> None:
        """Give a model's tensors of these names the values of those here."""
        state = model.state_dict()
        for name in names:
            if name not in self.body:
                raise UserError(f"{self.folder} has no tensor '{name}': it is another model")
            if state[name].shape != self.body[name].shape:
                shapes = f"{tuple(self.body[name].shape)}, but {tuple(state[name].shape)} in the model"
                raise UserError(f"{self.folder}: '{name}' is {shapes}: give the model its sizes")
        model.load_state_dict(state | {name: self.body[name] for name in names})

    @property
    def preset(self) -> str:
        """The preset of the run, or the one with the sizes of the body. Raises UserError where there is none."""
        if self.trained_as is not None:
            return self.trained_as
        for name, preset in models.presets().items():
            kind = models.config_class(self.family)
            if preset.family == self.family and _sizes(kind(vocabulary=1, **preset.values)) == _sizes(self.config):
                return name
        raise UserError(f"{self.folder} has sizes that no preset has: name a --model, and its sizes")

    @property
    def sizes(self) -> dict[str, Any]:
        """The fields of the config that neither the data nor the head decides."""
        others = (*models.sizes_of_data(self.family), "head", "pooling")
        return {name: value for name, value in asdict(self.config).items() if name not in others}


def open_start(place: Path | str) -> Start:
    """The weights of a folder or a name. Raises UserError, one line, for what is missing, damaged or unknown."""
    folder = locate(place, lambda line: print(line, file=sys.stderr, flush=True))
    if bundle.newest_checkpoint(folder) is not None:
        return _run_folder(folder)
    if not (folder / bundle.CONFIG).is_file():
        raise UserError(f"{place} is no folder of a trained model: it has no {bundle.CONFIG}")
    values = read_json(folder / bundle.CONFIG)
    return _run_folder(folder) if "format" in values else _public_folder(folder, values)


def _run_folder(folder: Path) -> Start:
    found = bundle.load(folder)
    folder, description = found.folder, describe(found)
    config = from_dict(models.config_class(description.family), description.architecture, str(folder / bundle.CONFIG))
    head = {name: tensor for name, tensor in found.tensors.items() if name.startswith(HEADS)}
    body = {name: tensor for name, tensor in found.tensors.items() if name not in head}
    reads_text = (folder / "tokenizer.json").is_file()
    tokenizer = load_text_tokenizer(folder / "tokenizer.json") if reads_text else None
    preset = description.recipe.get("model")
    trained_as = preset if isinstance(preset, str) else None
    return Start(folder, description.family, config, body, tokenizer, trained_as, head)


def _public_folder(folder: Path, values: Mapping[str, Any]) -> Start:
    config = bert.read_config(values, str(folder / bundle.CONFIG))
    parts = [read_tensors(file).tensors for file in weight_files(folder)]
    try:
        body = bert.foveate(config, {name: value for part in parts for name, value in part.items()}, fresh_head=True)
    except UserError as error:
        raise UserError(f"{folder}: {error}") from None
    return Start(folder, "bert", config, body, BertTokenizer.load(folder))


def _sizes(config: Any) -> tuple[Any, ...]:
    names = ("width", "heads", "layers", "feedforward", "max_length", "position_offset", "token_types", "epsilon")
    return tuple(getattr(config, name, None) for name in (*names, "norm", "positions"))


@dataclass(kw_only=True)
class FromWeights:
    """What the settings of a task have beside a `Recipe`'s where a training can begin from trained weights."""

    start: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Begin from the trained weights of this folder, with a new head."""

    lora: int | None = None
    """Leave the trained weights as they are, and train updates of this rank and the head alone (LoRA). In the end the
    updates are merged into the weights; adapter.safetensors has them too."""
    lora_layers: tuple[str, ...] = ("self.query", "self.value")
    """The linear layers that get an update: the ends of their places in the model."""

    @cached_property
    def trained_body(self) -> Start | None:
        """What `start` names."""
        return None if self.start is None else open_start(self.start)

    def build(self, **sizes: int) -> nn.Module:
        """The model, with the trained body if there is one."""
        body, recipe = self.trained_body, cast("Recipe[Any]", super())
        model = recipe.build(**sizes)
        if body is not None and next(model.parameters()).device.type != "meta":
            self._fill(model, body)
        if self.lora is not None:
            add_low_rank(model, self.lora, self.lora_layers)
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(parameter.requires_grad or name.startswith(HEADS))
        return model

    def _fill(self, model: nn.Module, body: Start) -> None:
        own = cast("Recipe[Any]", self).preset.family
        if parts := PARTS_OF.get((body.family, own)):
            body.fill_parts(model, parts)
            return
        if body.family != own:
            raise UserError(f"{self.start} is a {body.family}, which no {own} can begin from")
        body.fill(model)

    def check(self) -> None:
        """Tell what cannot work before any data is read."""
        if self.lora is not None and self.start is None:
            raise UserError("lora adapts trained weights: name them with --from, or train all weights without it")
        cast("Recipe[Any]", super()).check()

    @property
    def usable_before_the_end(self) -> bool:
        """Low-rank updates are merged in the end."""
        return self.lora is None

    def finish(self, model: nn.Module) -> None:
        """Merge low-rank updates, so that the folder holds a plain model; keep them in a file of their own too."""
        updates = low_rank_updates(model)
        if updates and main_process():
            write_tensors(cast("Recipe[Any]", self).out / ADAPTER, updates)
        merge_low_rank(model)
        cast("Recipe[Any]", super()).finish(model)

    def contents(self) -> dict[str, str]:
        """Digests of what is learned from, and of the weights."""
        body, recipe = self.trained_body, cast("Recipe[Any]", super())
        return recipe.contents() | ({} if body is None else {str(self.start): body.digest})

    def identity(self) -> dict[str, Any]:
        """What must be the same when a training is resumed: these weights too."""
        recipe = cast("Recipe[Any]", super())
        updates = {} if self.lora is None else {"lora": self.lora, "lora_layers": list(self.lora_layers)}
        return recipe.identity() | ({} if self.start is None else {"start": str(self.start)}) | updates


@dataclass(kw_only=True)
class FromEncoder(FromWeights):
    """The same for tasks whose models have an image encoder: that alone is trained before."""

    start: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Begin with the image encoder of these trained weights: a run of classify-image, caption or answer, or
    efficientnet-lite0. The model must have such an encoder."""

    def _fill(self, model: nn.Module, body: Start) -> None:
        encoder: Any = encoder_of(model)
        if encoder is None:
            raise UserError(
                f"{cast('Recipe[Any]', self).model} has no image encoder that could begin from {self.start}"
            )
        if encoder_path(body.body) is not None:
            fill_image_encoder(model, body.body, body.folder)
            return
        field = "backbone" if hasattr(model, "backbone") else "image-encoder"
        if not isinstance(encoder.config, models.config_class(body.family)):
            raise UserError(
                f"{self.start} has the family {body.family}, but the image encoder another: name one for it, such as "
                f"--architecture.{field} efficientnet-lite0-16"
            )
        body.fill(encoder)
