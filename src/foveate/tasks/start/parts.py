"""What a task takes of the trained weights that it begins from: all of a run of its own, the body, an image encoder."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
import tyro
from torch import nn

from foveate import models, run_dir
from foveate.contracts import Tokenizer
from foveate.errors import UserError
from foveate.tasks.run_config import RunConfig
from foveate.tasks.start.image_part import body_field, count_maps, fill_image_part, is_part_of, part_path, sizes_of_body
from foveate.tasks.start.shared_parts import PARTS_OF, part_sizes
from foveate.tasks.start.weights import HEADS, NOT_OF_A_BODY, Start
from foveate.training import Training

FINE_TUNING = Training(
    usual_epochs=3,
    least_steps=200,
    learning_rate=1e-4,
    schedule="linear",
    usual_warmup=50,
    validate_every=100,
    save_every=100,
    average=1,
)
"""How trained weights are adapted: three epochs at a low rate, or 200 small steps where data are few."""


def usual_model(recipe: Any) -> str:
    """The preset that a task begins from where none is named."""
    usual: str = getattr(recipe, "usual_model", None) or type(recipe).model
    return usual


RUN_HELP = (
    "Begin with all weights of this run of the same task, and with what it reads by, such as its vocabulary. Without "
    "--model, the preset and its sizes are the run's."
)
BODY_HELP = (
    "Begin from the trained weights of this folder; the head goes on if it has the labels of your data, else it is "
    "new. Without --model, the preset and its sizes are the folder's."
)
LANGUAGE_MODEL_HELP = (
    "Begin from trained weights: a run of this task, of `foveate train cloze` (a BERT) or `foveate train language` (a "
    "GPT), a Hugging Face folder, or minilm; none begins from nothing. The head goes on if it has the labels of your "
    "data, else it is new. Tokenizer and sizes are theirs, unless --model names others. A recurrent classifier "
    "begins from the embedding and the layers of a recurrent language model, or from the embedding of a BERT."
)
IMAGE_ENCODER_HELP = (
    "Begin with the part that reads images of these trained weights: a run of a task on images, efficientnet-lite0, or "
    "a Hugging Face or timm folder of a ViT, DeiT, BEiT, DINOv2, DINOv3, Swin, ConvNeXt, ResNet, EfficientNet, MViT, "
    "CLIP, SigLIP, DETR or TrOCR. All else is new, and of the preset's sizes."
)
RUN_OR_ENCODER_HELP = (
    "Begin with all weights of a run of the same task, and with what it reads and writes by, such as its labels; new "
    f"ones come behind them. {IMAGE_ENCODER_HELP.replace('Begin', 'Or begin')}"
)
DETECTOR_HELP = (
    "Begin with the trained weights of a detector, a run or a Hugging Face folder; its head goes on if it has the "
    "classes of your data, else it is new. Preset and sizes are then "
    f"those of the folder. {IMAGE_ENCODER_HELP.replace('Begin', 'Or begin')}"
)


class InitFrom:
    """What is taken. Each method is given a `Plan`, whose `weights` are opened when they are first
    asked for."""

    help: ClassVar[str] = RUN_HELP
    """What `--from` takes."""
    missing: ClassVar[str] = ""
    """What is wrong where nothing is named, for a task that begins from trained weights only."""

    def complete(self, recipe: Any) -> None:
        """Choose what the settings leave open, a preset and its sizes, as the trained model has them."""

    def training(self, recipe: Any) -> Training | None:
        """How to train, where the settings do not say; None for what is usual for the task."""
        return None

    def check(self, recipe: Any) -> None:
        """Raise UserError for weights that cannot be taken, before any data is read."""

    def sizes(self, recipe: Any) -> dict[str, int]:
        """The sizes of the trained weights, which data may make larger and not smaller."""
        return {}

    def tokenizer(self, recipe: Any) -> Tokenizer | None:
        """What the trained model cuts texts with, if that is taken."""
        return None

    def processor(self, recipe: Any, kind: Any) -> Any:
        """What the trained model reads examples by, if that is taken too."""
        return None

    def forms(self, recipe: Any, kind: Any) -> Any:
        """The forms of a run of the same task, where its body is taken, and its head if that has the same classes."""
        return None

    def fill(self, recipe: Any, model: nn.Module) -> None:
        """Give a model the weights. Raises UserError where they do not fit."""
        raise NotImplementedError

    def trained_place(self, recipe: Any, model: nn.Module) -> str:
        """The place in a model that the trained weights fill but for a head: "" for the whole model."""
        return ""


@dataclass(frozen=True)
class AllWeights(InitFrom):
    """All weights of a run, and what reads its examples, such as a vocabulary, a palette, the form of images."""

    of: tuple[str, ...] = ()
    """The tasks that the run may be of, by default the task itself."""
    grows: str | None = None
    """The size that new examples add to, such as "classes": what the run does not know comes behind what it knows."""
    fine_tuned: bool = False
    """Whether it is trained at a low rate, unless the settings say how."""
    examples: tuple[str, ...] = ()
    """The settings of the examples that are the run's, unless others are given."""

    folders: bool = False
    """Whether a Hugging Face folder may stand for a run: its weights, with the head, and its tokenizer."""
    new_head: bool = True
    """Whether a folder without a head may too: then a new one is learned."""

    def complete(self, recipe: Any) -> None:
        run, start = self._run(recipe), recipe.weights
        if recipe.model == usual_model(recipe):
            recipe.model = start.preset
        if recipe.preset.family == start.family:
            sizes = start.sizes if run is None else run.architecture
            recipe.architecture = {**sizes, **(recipe.architecture or {})}
        if run is None:
            return
        if hasattr(recipe, "take_settings"):
            recipe.take_settings(run.recipe, self.examples)
            return
        learned = run.recipe.get("examples", {})
        recipe.examples = replace(recipe.examples, **{name: learned[name] for name in self.examples if name in learned})

    def training(self, recipe: Any) -> Training | None:
        return replace(FINE_TUNING) if self.fine_tuned else None

    def check(self, recipe: Any) -> None:
        run, start = self._run(recipe), recipe.weights
        if start.family != recipe.preset.family:
            raise UserError(f"{recipe.start} is a {start.family}, but {recipe.model} is a {recipe.preset.family}")
        predicts, wanted = getattr(start.config, "head", "words"), recipe.page.head or "words"
        if run is None and predicts != wanted and not (predicts == "none" and self.new_head):
            raise UserError(f"{recipe.start} predicts {predicts!r}, but {recipe.task} needs a model of {wanted!r}")

    def sizes(self, recipe: Any) -> dict[str, int]:
        """Of a run the rows of its vocabulary, some of which no token may have."""
        start = recipe.weights
        names = models.sizes_of_data(start.family)
        if self._run(recipe) is not None:
            names = [name for name in names if name in models.VOCABULARIES]
        return {name: getattr(start.config, name) for name in names}

    def tokenizer(self, recipe: Any) -> Tokenizer | None:
        found: Tokenizer | None = recipe.weights.tokenizer if self._run(recipe) is None else None
        return found

    def processor(self, recipe: Any, kind: Any) -> Any:
        run = self._run(recipe)
        return None if run is None else kind.of_task(run.task).load(recipe.weights.folder)

    def fill(self, recipe: Any, model: nn.Module) -> None:
        """Rows of what the run does not know stay random."""
        start, config = recipe.weights, model.config
        tensors = dict(start.tensors)
        if self._run(recipe) is None and getattr(start.config, "head", None) == "none":
            tensors |= {name: own for name, own in model.state_dict().items() if name.startswith(HEADS)}
            recipe.report = f"begins with {recipe.start}, which has no head: a new one is learned"
        if self.grows is not None:
            known, now = ((getattr(one, self.grows),) for one in (start.config, config))
            for name, own in model.state_dict().items():
                given = tensors.get(name)
                if given is not None and (given.shape[:1], own.shape) == (known, (*now, *given.shape[1:])):
                    tensors[name] = torch.cat([given, own[known[0] :]])
        run_dir.fill(model, tensors, str(recipe.start), "it has other sizes: leave them out")

    def _run(self, recipe: Any) -> RunConfig | None:
        """What the run says of itself; None for a Hugging Face folder."""
        start = recipe.weights
        if start.run is None and self.folders:
            return None
        if start.run is None or start.run.task not in (self.of or (recipe.task,)):
            found = "not a run of foveate" if start.run is None else f"a run of {start.run.task}"
            wanted = ", ".join(self.of) or "its own"
            raise UserError(f"{recipe.start} is {found}, but {recipe.task} begins from one of {wanted}")
        run: RunConfig = start.run
        return run


class Body(InitFrom):
    """All but the head, of a model of the same family; the head too where it has the same classes."""

    help = BODY_HELP

    def complete(self, recipe: Any) -> None:
        if recipe.model == usual_model(recipe):
            self._take_sizes(recipe)

    def forms(self, recipe: Any, kind: Any) -> Any:
        return kind.load(recipe.weights.folder) if continues(recipe) else None

    def fill(self, recipe: Any, model: nn.Module) -> None:
        start, own = recipe.weights, recipe.preset.family
        if start.family != own:
            raise UserError(f"{recipe.start} is a {start.family}, which no {own} can begin from")
        start.fill(model)
        recipe.fill_head(model)

    @staticmethod
    def _take_sizes(recipe: Any) -> None:
        start = recipe.weights
        as_it_is = recipe.model == usual_model(recipe) and start.family in recipe.families
        if as_it_is:
            recipe.model = start.preset
        if recipe.model == start.trained_as or (as_it_is and start.trained_as is None):
            own = start.sizes
            head = getattr(start.config, "head", None)
            if head is not None and head == recipe.page.head:
                own |= {name: getattr(start.config, name) for name in NOT_OF_A_BODY if hasattr(start.config, name)}
            elif start.run is None and hasattr(start.config, "label_bias"):  # as transformers has it, for the way back
                own["label_bias"] = recipe.page.head == "tokens"
            recipe.architecture = own | dict(recipe.architecture or {})
            size = getattr(start.config, "image_size", None)
            if size is not None and hasattr(recipe, "take_settings"):
                recipe.take_settings({"reads": {"size": size}}, ("size",), left_open=True)


class LanguageModelBody(Body):
    """The body and the tokenizer of a language model; or the words and layers that a model of another family has too,
    which then is trained as usual."""

    def complete(self, recipe: Any) -> None:
        self._take_sizes(recipe)
        if self._shared(recipe):
            start, given = recipe.weights, dict(recipe.architecture or {})
            recipe.architecture = part_sizes(start.family, start.config, recipe.preset.values | given) | given

    def training(self, recipe: Any) -> Training | None:
        return None if self._shared(recipe) else replace(FINE_TUNING)

    def tokenizer(self, recipe: Any) -> Tokenizer | None:
        found: Tokenizer | None = recipe.weights.tokenizer
        return found

    def sizes(self, recipe: Any) -> dict[str, int]:
        return {"vocabulary": recipe.weights.config.vocabulary}

    def fill(self, recipe: Any, model: nn.Module) -> None:
        if shared := self._shared(recipe):
            recipe.weights.fill_parts(model, shared)
            taken = " and ".join(part.rstrip(".") for part in shared)
            recipe.report = f"begins with the {taken} of {recipe.start}; all else is new"
        else:
            super().fill(recipe, model)

    @staticmethod
    def _shared(recipe: Any) -> tuple[str, ...]:
        return PARTS_OF.get((recipe.weights.family, recipe.preset.family), ())


@dataclass(frozen=True)
class RunOrBody(InitFrom):
    """All weights of a run of the same task, or else the body of a language model."""

    run: InitFrom
    body: InitFrom = field(default_factory=LanguageModelBody)

    def _of(self, recipe: Any) -> InitFrom:
        own = recipe.weights.run
        return self.run if own is not None and own.task == recipe.task else self.body

    def complete(self, recipe: Any) -> None:
        self._of(recipe).complete(recipe)

    def training(self, recipe: Any) -> Training | None:
        return self._of(recipe).training(recipe)

    def check(self, recipe: Any) -> None:
        self._of(recipe).check(recipe)

    def tokenizer(self, recipe: Any) -> Tokenizer | None:
        return self._of(recipe).tokenizer(recipe)

    def sizes(self, recipe: Any) -> dict[str, int]:
        return self._of(recipe).sizes(recipe)

    def processor(self, recipe: Any, kind: Any) -> Any:
        return self._of(recipe).processor(recipe, kind)

    def forms(self, recipe: Any, kind: Any) -> Any:
        return self._of(recipe).forms(recipe, kind)

    def fill(self, recipe: Any, model: nn.Module) -> None:
        self._of(recipe).fill(recipe, model)

    def trained_place(self, recipe: Any, model: nn.Module) -> str:
        return self._of(recipe).trained_place(recipe, model)


@dataclass(frozen=True)
class ImageEncoder(InitFrom):
    """The part that reads images of a model that has one or is one, in a model that builds on such a part."""

    help: ClassVar[str] = IMAGE_ENCODER_HELP
    stride: int | None = None
    """The most pixels from place to place of the map that is read, where a model reads one: it must tell where things
    are. The stages behind it are left out."""

    def complete(self, recipe: Any) -> None:
        """The body is that of the trained weights, whatever its sizes, unless the preset's own is among them."""
        if body_field(recipe.preset.family) is None and recipe.model == usual_model(recipe):
            recipe.model = self._first_model(recipe)
        field, given = body_field(recipe.preset.family), dict(recipe.architecture or {})
        if field is None:
            raise UserError(f"{recipe.model} has no image encoder that could begin from {recipe.start}")
        usual, part = recipe.preset.values, recipe.image_part
        if "fixed_norms" in self._fields(recipe):
            recipe.architecture = given = {"fixed_norms": True} | given
        if field in given or is_part_of(usual.get(field), part):
            return
        stride = None if "backbone_stages" in self._fields(recipe) else self.stride
        own = {field: sizes_of_body(part, stride), "channels": part.config.channels, **self._maps(recipe, usual, part)}
        recipe.architecture = {name: own[name] for name in own if name in self._fields(recipe)} | given

    def check(self, recipe: Any) -> None:
        _ = recipe.image_part  # what has none is told before any data is read

    def trained_place(self, recipe: Any, model: nn.Module) -> str:
        return part_path(model) or ""

    def fill(self, recipe: Any, model: nn.Module) -> None:
        part, encoder = recipe.image_part, model.get_submodule(part_path(model) or "")
        config: Any = encoder.config
        if not isinstance(config, models.config_class(part.family)):
            field = str(body_field(recipe.preset.family)).replace("_", "-")
            raise UserError(
                f"{recipe.start} has the family {part.family}, but the image encoder another: leave out "
                f"--architecture.{field}"
            )
        fill_image_part(model, recipe.weights, part)
        recipe.report = f"begins with the image encoder of {recipe.start}; all else is new"

    @staticmethod
    def _fields(recipe: Any) -> set[str]:
        return {one.name for one in fields(models.config_class(recipe.preset.family))}

    @staticmethod
    def _first_model(recipe: Any) -> str:
        """The first preset of the task that builds on a part that reads images, where the usual one does not."""
        known = models.presets(recipe.families)
        found = (name for name, preset in known.items() if body_field(preset.family) is not None)
        return next(found, recipe.model)

    def _maps(self, recipe: Any, usual: Mapping[str, Any], part: Start) -> dict[str, int]:
        """How many feature maps are read: as many as usual, if there are so many."""
        name = "backbone_stages"
        if name not in self._fields(recipe):
            return {}
        kind = models.config_class(recipe.preset.family)
        wanted = usual.get(name, getattr(kind, name))
        return {name: min(wanted, count_maps(part))}


def continues(recipe: Any) -> bool:
    """Whether the trained weights are a run of the same task, and no model of another family is asked for."""
    run = recipe.weights.run
    if run is None or run.task != recipe.task:
        return False
    return recipe.model == usual_model(recipe) or recipe.preset.family == recipe.weights.family


@dataclass(frozen=True)
class RunOrEncoder(RunOrBody):
    """All weights of a run of the same task, or the image encoder of another model."""

    help: ClassVar[str] = RUN_OR_ENCODER_HELP
    run: InitFrom = field(default_factory=AllWeights)
    body: InitFrom = field(default_factory=ImageEncoder)

    def _of(self, recipe: Any) -> InitFrom:
        return self.run if continues(recipe) else self.body


@dataclass(frozen=True)
class FamilyOrEncoder(RunOrBody):
    """`run` for a model of the task's families, or the image encoder of another model."""

    body: InitFrom = field(default_factory=ImageEncoder)

    def _of(self, recipe: Any) -> InitFrom:
        return self.run if recipe.weights.family in recipe.families else self.body


@dataclass(frozen=True)
class DetectorOrEncoder(FamilyOrEncoder):
    """The body of a detector, or the image encoder of another model."""

    help: ClassVar[str] = DETECTOR_HELP
    run: InitFrom = field(default_factory=Body)

    def training(self, recipe: Any) -> Training | None:
        return replace(FINE_TUNING, clip=0.1) if recipe.weights.family in recipe.families else None


FromRun = Annotated[Path | None, tyro.conf.arg(name="from", help=RUN_HELP)]
FromBody = Annotated[Path | None, tyro.conf.arg(name="from", help=BODY_HELP)]
FromLanguageModel = Annotated[Path | None, tyro.conf.arg(name="from", help=LANGUAGE_MODEL_HELP)]
FromImageEncoder = Annotated[Path | None, tyro.conf.arg(name="from", help=IMAGE_ENCODER_HELP)]
