"""Trainings that begin from a model that compares images and texts, of a run or of a Hugging Face folder."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from foveate.errors import UserError
from foveate.tasks.hf.matchers import forms_of
from foveate.tasks.start.parts import FINE_TUNING, IMAGE_ENCODER_HELP, AllWeights, FamilyOrEncoder, InitFrom
from foveate.training import Training


@dataclass(frozen=True)
class MatcherWeights(AllWeights):
    """All weights of a run of the same task or of a folder, with what it reads."""

    help: ClassVar[str] = (
        "Begin with all weights of a run of the same task, or of a Hugging Face folder of a CLIP or SigLIP, with its "
        "tokenizer and the size and statistics of its images."
    )
    folders: bool = True

    def training(self, recipe: Any) -> Training | None:
        """A run goes on as it was trained; a folder is adapted at a low rate."""
        return replace(FINE_TUNING) if recipe.weights.run is None else None

    def check(self, recipe: Any) -> None:
        super().check(recipe)
        vision, reads = getattr(recipe.weights.config, "vision", None), recipe.recipe.reads
        if vision is not None and reads.height != vision.image_size:
            raise UserError(f"size is {reads.height}, but the images of {recipe.start} have {vision.image_size} pixels")

    def tokenizer(self, recipe: Any) -> None:
        """None: it belongs to what is written."""

    def processor(self, recipe: Any, kind: Any) -> Any:
        start = recipe.weights
        return super().processor(recipe, kind) if start.run is not None else forms_of(start.folder, start.config)


@dataclass(frozen=True)
class MatcherOrEncoder(FamilyOrEncoder):
    """A model that compares images and texts as a whole, or the image encoder of another one."""

    help: ClassVar[str] = f"{MatcherWeights.help} {IMAGE_ENCODER_HELP.replace('Begin', 'Or begin')}"
    run: InitFrom = field(default_factory=MatcherWeights)
