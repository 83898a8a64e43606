"""What trainings on sounds take of trained weights: of runs, and of Hugging Face folders of models that read sounds."""

from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from foveate.errors import UserError
from foveate.forms.label import Label
from foveate.forms.processor import Processor
from foveate.tasks.hf.sounds import read_form, written_form
from foveate.tasks.start.parts import FINE_TUNING, AllWeights, Body
from foveate.training import Training

HELP = (
    "Begin with all weights of a run of `foveate train transcribe`, or of a Hugging Face folder of a Whisper, wav2vec2 "
    "or HuBERT, and with what these read and write. A folder that was only pretrained gives all but the last layer."
)

BODY_HELP = (
    "Begin from the trained weights of a run, or of a Hugging Face folder of a wav2vec2, HuBERT or audio spectrogram "
    "Transformer; the last layer goes on if it has the labels of your data, else it is new. Sizes, and "
    "how sounds are read, are the folder's."
)


@dataclass(frozen=True)
class HeardWeights(AllWeights):
    """All weights of a model that writes what is said; of one that predicts nothing, or labels, all but the head."""

    help = HELP
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
