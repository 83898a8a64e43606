"""What trainings on sounds take of trained weights: of runs, and of Hugging Face folders of models that read sounds."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from torch import Tensor, nn

from foveate import models
from foveate.data.sounds.whisper_features import WhisperFeatures
from foveate.errors import UserError
from foveate.forms.label import Label
from foveate.forms.processor import Processor
from foveate.forms.whisper_frames import WhisperFrames
from foveate.models.speech.las import PYRAMID
from foveate.models.speech.whisper_encoder import WhisperEncoderConfig, listener_sizes
from foveate.tasks.hf.sounds import read_form, written_form
from foveate.tasks.start.parts import FINE_TUNING, AllWeights, Body, InitFrom, RunOrBody, usual_model
from foveate.training import Training

HELP = (
    "Begin with all weights of a run of `foveate train transcribe`, or of a Hugging Face folder of a Whisper, wav2vec2 "
    "or HuBERT, and with what these read and write. A folder that was only pretrained gives all but the last layer. "
    "With a --model that listens as a Whisper does, such as las-whisper-tiny, begin with the encoder of a Whisper."
)

LISTENING = ("las", "whisper-ctc")
"""Families whose models may listen with the encoder of a Whisper."""

LISTENER_RATE = 0.1
"""The factor of the learning rate for a trained encoder: all else is new, and learns faster."""

BODY_HELP = (
    "Begin from the trained weights of a run, or of a Hugging Face folder of a wav2vec2, HuBERT or audio spectrogram "
    "Transformer; the last layer goes on if it has the labels of your data, else it is new. Sizes, and "
    "how sounds are read, are the folder's."
)


@dataclass(frozen=True)
class HeardWeights(AllWeights):
    """All weights of a model that writes what is said; of one that predicts nothing, or labels, all but the head."""

    grows: str | None = "vocabulary"
    folders: bool = True

    def complete(self, recipe: Any) -> None:
        Body().complete(recipe) if self._is_body(recipe) else super().complete(recipe)

    def training(self, recipe: Any) -> Training | None:
        return replace(FINE_TUNING) if self._run(recipe) is None else super().training(recipe)

    def check(self, recipe: Any) -> None:
        check_family(recipe) if self._is_body(recipe) else super().check(recipe)

    def sizes(self, recipe: Any) -> dict[str, int]:
        """Those of the forms, which new characters make larger."""
        return {}

    def tokenizer(self, recipe: Any) -> None:
        return None

    def processor(self, recipe: Any, kind: Any) -> Any:
        start = recipe.weights
        if self._run(recipe) is not None:
            return super().processor(recipe, kind)
        writes = replace(recipe.recipe.writes) if self._is_body(recipe) else written_form(start.folder, start.config)
        return Processor(read_form(start.folder, start.config), writes)

    def fill(self, recipe: Any, model: nn.Module) -> None:
        Body().fill(recipe, model) if self._is_body(recipe) else super().fill(recipe, model)

    def _is_body(self, recipe: Any) -> bool:
        return self._run(recipe) is None and getattr(recipe.weights.config, "head", "words") != "words"


class Listener(InitFrom):
    """The encoder of a trained Whisper, or of a run that listens with one, and its spectrograms; all else is new."""

    def complete(self, recipe: Any) -> None:
        """The sizes of the listener are those of the trained one."""
        given, usual = dict(recipe.architecture or {}), models.config_class(recipe.preset.family).listener
        listener = (recipe.preset.values | given).get("listener", usual)
        if PYRAMID in (listener, getattr(recipe.weights.config, "listener", None)):
            raise UserError(
                f"{recipe.start} and {recipe.model} do not both listen as a Whisper does: --model las-whisper-tiny and "
                "whisper-ctc-tiny begin from a Whisper, or from one another"
            )
        if "listener" not in given and listener_sizes(listener) != (sizes := _trained_listener(recipe)):
            recipe.architecture = {"listener": asdict(sizes)} | given

    def training(self, recipe: Any) -> Training:
        usual: Training = recipe.page.usual_training(recipe.preset)
        return replace(usual, rate_factors={"listener": LISTENER_RATE})

    def check(self, recipe: Any) -> None:
        if not getattr(recipe.weights.config, "windows", True):
            raise UserError(
                f"{recipe.start} reads other spectrograms than the public Whispers, with which others listen"
            )

    def processor(self, recipe: Any, kind: Any) -> Processor:
        reads = WhisperFrames(features=WhisperFeatures(recipe.weights.config.bands))
        return Processor(reads, replace(recipe.recipe.writes))

    def fill(self, recipe: Any, model: nn.Module) -> None:
        part = replace(recipe.weights, tensors=tensors_of(recipe.weights.tensors, "listener."))
        part.fill(model.get_submodule("listener"), part=True)
        recipe.report = f"begins with the encoder of {recipe.start}; all else is new"

    def trained_place(self, recipe: Any, model: nn.Module) -> str:
        return "listener"


def _trained_listener(recipe: Any) -> WhisperEncoderConfig:
    """The sizes of the encoder of the trained weights."""
    config = recipe.weights.config
    own = getattr(config, "listener", None)
    return WhisperEncoderConfig.of(config) if own is None else listener_sizes(own)


def tensors_of(tensors: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    """The tensors of a part, without its name; of a model that is this part all of them."""
    own = {name.removeprefix(part): tensor for name, tensor in tensors.items() if name.startswith(part)}
    return own or dict(tensors)


@dataclass(frozen=True)
class HeardOrListener(RunOrBody):
    """All weights of a model that writes what is said, or the encoder of a Whisper in a model of another family."""

    help: ClassVar[str] = HELP
    run: InitFrom = field(default_factory=HeardWeights)
    body: InitFrom = field(default_factory=Listener)

    def _of(self, recipe: Any) -> InitFrom:
        begun, wanted = recipe.weights.family, recipe.preset.family
        named = recipe.model != usual_model(recipe) and begun != wanted
        return self.body if named and wanted in LISTENING and begun in ("whisper", *LISTENING) else self.run


class SoundBody(Body):
    """All but the head, and of a Hugging Face folder how it reads sounds."""

    help = BODY_HELP

    def training(self, recipe: Any) -> Training | None:
        return replace(FINE_TUNING) if recipe.weights.run is None else super().training(recipe)

    def check(self, recipe: Any) -> None:
        check_family(recipe)

    def processor(self, recipe: Any, kind: Any) -> Any:
        start = recipe.weights
        return None if start.run is not None else Processor(read_form(start.folder, start.config, label=True), Label())


def check_family(recipe: Any) -> None:
    """Raise UserError for the body of another family, whose way to read is not known, before any data is read."""
    start, own = recipe.weights, recipe.preset.family
    if start.family != own:
        raise UserError(f"{recipe.start} is a {start.family}, which no {own} can begin from")
