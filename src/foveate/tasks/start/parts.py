"""What a task takes of the trained weights that it begins from: all of a run of its own, the body, an image encoder."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
import tyro
from torch import nn

from foveate import models, run_dir
from foveate.contracts import Tokenizer
from foveate.errors import UserError
from foveate.models.vision.image_encoder import encoder_of
from foveate.tasks.run_config import VOCABULARIES, RunConfig
from foveate.tasks.start.image_encoder import encoder_path, fill_image_encoder
from foveate.tasks.start.shared_parts import PARTS_OF, part_sizes
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
    "Begin from the trained weights of this folder, with a new head. Without --model, the preset and its sizes are "
    "the folder's."
)
LANGUAGE_MODEL_HELP = (
    "Begin from trained weights, with a new head: a run of `foveate train cloze` (a BERT) or `foveate train language` "
    "(a GPT), a Hugging Face folder of a BERT or RoBERTa, or minilm. Tokenizer and sizes are theirs, unless --model "
    "names others. A recurrent classifier begins from the embedding and the layers of a recurrent language model, or "
    "from the embedding of a BERT."
)
DETECTOR_HELP = (
    "Begin with the trained weights of a detector, a run or a Hugging Face folder, and with new classes; preset and "
    "sizes are then those of the folder. Or with the image encoder of these: a run of classify-image, or of a task "
    "whose models have such an encoder, or efficientnet-lite0."
)
IMAGE_ENCODER_HELP = (
    "Begin with the image encoder of these trained weights: a run of classify-image, or of a task whose models have "
    "such an encoder, or efficientnet-lite0. The model must have such an encoder."
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

    def fill(self, recipe: Any, model: nn.Module) -> None:
        """Give a model the weights. Raises UserError where they do not fit."""
        raise NotImplementedError


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
        if run is None and predicts != wanted:
            raise UserError(f"{recipe.start} predicts {predicts!r}, but {recipe.task} needs a model of {wanted!r}")

    def sizes(self, recipe: Any) -> dict[str, int]:
        """Of a run the rows of its vocabulary, some of which no token may have."""
        start = recipe.weights
        names = models.sizes_of_data(start.family)
        if self._run(recipe) is not None:
            names = [name for name in names if name in VOCABULARIES]
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
    """All but the head, of a model of the same family."""

    help = BODY_HELP

    def complete(self, recipe: Any) -> None:
        if recipe.model == usual_model(recipe):
            self._take_sizes(recipe)

    def fill(self, recipe: Any, model: nn.Module) -> None:
        start, own = recipe.weights, recipe.preset.family
        if start.family != own:
            raise UserError(f"{recipe.start} is a {start.family}, which no {own} can begin from")
        start.fill(model)

    @staticmethod
    def _take_sizes(recipe: Any) -> None:
        start = recipe.weights
        as_it_is = recipe.model == usual_model(recipe) and start.family in recipe.families
        if as_it_is:
            recipe.model = start.preset
        if recipe.model == start.trained_as or (as_it_is and start.run is None):
            own = start.sizes
            if start.run is None and hasattr(start.config, "label_bias"):  # as transformers has it, for the way back
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
        else:
            super().fill(recipe, model)

    @staticmethod
    def _shared(recipe: Any) -> tuple[str, ...]:
        return PARTS_OF.get((recipe.weights.family, recipe.preset.family), ())


@dataclass(frozen=True)
class RunOrBody(InitFrom):
    """All weights of a run of the same task, or else the body of a language model."""

    run: AllWeights
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

    def fill(self, recipe: Any, model: nn.Module) -> None:
        self._of(recipe).fill(recipe, model)


class DetectorOrEncoder(InitFrom):
    """The body of a detector, or the image encoder of another model."""

    help = DETECTOR_HELP

    @staticmethod
    def _of(recipe: Any) -> InitFrom:
        return Body() if recipe.weights.family in recipe.families else ImageEncoder()

    def complete(self, recipe: Any) -> None:
        self._of(recipe).complete(recipe)

    def training(self, recipe: Any) -> Training | None:
        return replace(FINE_TUNING, clip=0.1) if recipe.weights.family in recipe.families else None

    def check(self, recipe: Any) -> None:
        self._of(recipe).check(recipe)

    def fill(self, recipe: Any, model: nn.Module) -> None:
        self._of(recipe).fill(recipe, model)


class ImageEncoder(InitFrom):
    """The image encoder, of a model that has one or is one."""

    help = IMAGE_ENCODER_HELP

    def check(self, recipe: Any) -> None:
        _ = recipe.weights  # a folder that is not there is told before any data is read

    def fill(self, recipe: Any, model: nn.Module) -> None:
        start = recipe.weights
        encoder: Any = encoder_of(model)
        if encoder is None:
            raise UserError(f"{recipe.model} has no image encoder that could begin from {recipe.start}")
        if encoder_path(start.body) is not None:
            fill_image_encoder(model, start.body, start.folder)
            return
        field = "backbone" if hasattr(model, "backbone") else "image-encoder"
        if not isinstance(encoder.config, models.config_class(start.family)):
            raise UserError(
                f"{recipe.start} has the family {start.family}, but the image encoder another: name one for it, such "
                f"as --architecture.{field} efficientnet-lite0-16"
            )
        start.fill(encoder, part=True)


FromRun = Annotated[Path | None, tyro.conf.arg(name="from", help=RUN_HELP)]
FromBody = Annotated[Path | None, tyro.conf.arg(name="from", help=BODY_HELP)]
FromLanguageModel = Annotated[Path | None, tyro.conf.arg(name="from", help=LANGUAGE_MODEL_HELP)]
FromImageEncoder = Annotated[Path | None, tyro.conf.arg(name="from", help=IMAGE_ENCODER_HELP)]
