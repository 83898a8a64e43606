"""Trained weights to begin a training from: a run folder, a Hugging Face folder of a BERT, or weights by name."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from foveate import models, run_dir
from foveate.config import from_dict
from foveate.contracts import Tokenizer
from foveate.data.images.labelled import ImageFormat
from foveate.data.text.files import digest
from foveate.data.tokens.bert_tokenizer import load_text_tokenizer
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.errors import UserError
from foveate.files import read_json
from foveate.forms.processor import saved_forms
from foveate.forms.public_image import PublicImage
from foveate.interop.layout import label_names
from foveate.interop.pretrained import locate
from foveate.interop.public_folder import (
    has_known_head,
    header_of,
    is_public,
    read_config,
    read_folder,
    read_values,
    reads_images,
    reads_sounds,
    translates,
)
from foveate.interop.weight_files import weight_files
from foveate.tasks.hf.reader import open_tokenizer
from foveate.tasks.run_config import RunConfig, describe
from foveate.tasks.start.shared_parts import part_names
from foveate.tasks.upgrade import upgrade_processor

NOT_OF_A_BODY = ("head", "predict", "pooling", "label_bias")
"""Fields of a config that its head decides."""

HEADS = (
    *("head.", "output.", "teacher_output.", "summary."),
    *("decoder.output.", "proposals.output.", "queries.labels."),  # of detectors
)
"""What the names of a head's tensors begin with; all others are the body's."""


IMAGE_SETTINGS = ("pixel_mean", "pixel_deviation")
"""What the forms of a run say of images, beside their size."""


@dataclass
class Start:
    """A trained model and the tokenizer that it reads with."""

    folder: Path
    files: list[Path]
    """Those with its weights."""
    family: str
    config: Any
    """The config of the trained model."""
    tensors: dict[str, Tensor] = field(repr=False)
    """Its weights; those of a Hugging Face folder without a head that our models do not have."""
    tokenizer: Tokenizer | None = field(repr=False)
    """None for a model that reads no text, and for one that writes another: it has one for each side."""
    run: RunConfig | None = field(default=None, repr=False)
    """What a run folder says of itself."""
    is_part: bool = False
    """Whether this is the part of the trained model that reads images."""

    @cached_property
    def body(self) -> dict[str, Tensor]:
        """The weights without those of the head."""
        return {name: tensor for name, tensor in self.tensors.items() if not name.startswith(HEADS)}

    @cached_property
    def images(self) -> dict[str, Any]:
        """How the model reads images, as settings of the forms of images; empty for one that reads none."""
        if self.run is not None:
            reads = self.run.recipe.get("reads")
            return {name: reads.get(name) for name in IMAGE_SETTINGS} if isinstance(reads, dict) else {}
        own: Any = getattr(self.config, "vision", self.config)
        if not reads_images(header_of(self.folder).model_type):
            return {}
        image = PublicImage.of_folder(self.folder, getattr(own, "image_size", 224), own.channels)
        size = getattr(own, "image_size", None)
        if size is None and not self.is_part:  # the images of a detector or of documents are large
            size = image.longest or image.height
        return {"size": size, "pixel_mean": image.mean, "pixel_deviation": image.spread}

    @cached_property
    def image_format(self) -> ImageFormat | None:
        """The size and the channels of the images that a run reads; None for one that reads none, and for a folder."""
        if self.run is None or not hasattr(self.config, "channels"):
            return None
        reads = saved_forms(self.folder, partial(upgrade_processor, self.run.task)).get("reads")
        reads = reads if isinstance(reads, dict) else {}
        size = (reads.get("format") or reads).get("size")
        return None if size is None else ImageFormat(size, self.config.channels)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The classes of a Hugging Face folder that has a head for some, in their order."""
        if self.run is not None or not any(name.startswith(HEADS) for name in self.tensors):
            return ()
        return tuple(label_names(read_values(self.folder), str(self.folder / run_dir.CONFIG)))

    @property
    def digest(self) -> str:
        """A few letters that are others for other weights."""
        return " ".join(map(digest, self.files))

    @property
    def trained_as(self) -> str | None:
        """The preset that a run began from; its sizes may have been changed."""
        preset = None if self.run is None or self.is_part else self.run.recipe.get("model")
        return preset if isinstance(preset, str) else None

    def fill(self, model: nn.Module, part: bool = False) -> None:
        """Give a model the trained body, or as many of its first layers as it has, which is then said; its head stays
        as it is.

        With `part`, the model may lack other tensors too. Raises UserError where the body does not fit.
        """
        state = model.state_dict()
        left = [] if part else [name for name in self.body if name not in state]
        if others := [name for name in left if not _is_layer(name)]:
            raise UserError(f"{self.folder} has the tensor '{others[0]}', which the model lacks: it is another model")
        if left:
            most, count = (getattr(one, "layers", "?") for one in (self.config, model.config))
            say(f"the model has {count} of the {most} layers of {self.folder}: those behind them are left out")
        self._fill(model, [name for name in state if not name.startswith(HEADS)])

    def fill_head(self, model: nn.Module) -> bool:
        """Give a model the trained head, if it is of the same kind; says whether it is."""
        state = model.state_dict()
        names = [name for name in state if name.startswith(HEADS)]
        if not all(name in self.tensors and self.tensors[name].shape == state[name].shape for name in names):
            return False
        model.load_state_dict(state | {name: self.tensors[name] for name in names})
        return True

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
        """The preset of the run, the one with the sizes of the body, or any of its family, which then has its sizes."""
        if self.trained_as is not None:
            return self.trained_as
        kind, own = models.config_class(self.family), models.presets((self.family,))
        open_sizes = dict.fromkeys(models.sizes_of_data(self.family), 1)
        for name, preset in own.items():
            if _sizes(kind(**{**open_sizes, **preset.values})) == _sizes(self.config):
                return name
        return next(iter(own))

    @property
    def sizes(self) -> dict[str, Any]:
        """The fields of the config that neither the data nor the head decides."""
        of_images = ("head", "predict")  # their pooling is of the body
        heads = NOT_OF_A_BODY if self.tokenizer is not None else of_images
        others = (*models.sizes_of_data(self.family), *heads)
        return {name: value for name, value in asdict(self.config).items() if name not in others}


def say(line: str) -> None:
    """Tell the user something beside the output."""
    print(line, file=sys.stderr, flush=True)


def has_head(model: nn.Module) -> bool:
    """Whether some tensors of a model are those of a head."""
    return any(name.startswith(HEADS) for name in model.state_dict())


def _is_layer(name: str) -> bool:
    """Whether a tensor is in a numbered layer, such as "stack.blocks.7.self.query.weight"."""
    return any(part.isdecimal() for part in name.split("."))


def open_start(place: Path | str) -> Start:
    """The weights of a folder or a name. Raises UserError, one line, for what is missing, damaged or unknown."""
    folder = locate(place, say)
    if run_dir.newest_checkpoint(folder) is not None:
        return _run_folder(folder)
    if not (folder / run_dir.CONFIG).is_file():
        raise UserError(f"{place} is not a folder of a trained model: it has no {run_dir.CONFIG}")
    return _run_folder(folder) if "format" in read_json(folder / run_dir.CONFIG) else _public_folder(folder)


def read_model_config(folder: Path) -> tuple[str, Any]:
    """The family and the config of the model in a folder, whoever wrote it; its weights are not read.

    Raises UserError, one line, for what is missing, damaged or unknown.
    """
    if run_dir.newest_checkpoint(folder) is not None or not is_public(folder):
        found = run_dir.load(folder)
        run = describe(found)
        where = str(found.folder / run_dir.CONFIG)
        return run.family, from_dict(models.config_class(run.family), run.architecture, where)
    layout, config = read_config(folder, body=not has_known_head(folder))
    return layout.family, config


def _run_folder(folder: Path) -> Start:
    found = run_dir.load(folder)
    folder, run = found.folder, describe(found)
    config = from_dict(models.config_class(run.family), run.architecture, str(folder / run_dir.CONFIG))
    reads_text = (folder / "tokenizer.json").is_file()
    tokenizer = load_text_tokenizer(folder / "tokenizer.json") if reads_text else None
    return Start(folder, [found.weights], run.family, config, found.tensors, tokenizer, run)


def _public_folder(folder: Path) -> Start:
    public = read_folder(folder, body=not has_known_head(folder))
    tokenizer: Tokenizer | None = None
    kind = public.values.get("model_type")
    if not reads_images(kind) and not reads_sounds(kind) and not translates(folder):
        own = open_tokenizer(folder, public)
        tokenizer = TextTokenizer.of(own) if isinstance(own, PublicTokenizer) else own
    return Start(folder, weight_files(folder), public.family, public.model.config, public.model.state_dict(), tokenizer)


def _sizes(config: Any) -> dict[str, Any]:
    """What makes a body another one, whatever its head and its dropout."""
    free = (*NOT_OF_A_BODY, "vocabulary", "classes", "conditions")
    return {name: value for name, value in asdict(config).items() if name not in free and "dropout" not in name}
