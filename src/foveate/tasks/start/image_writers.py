"""Trainings that begin from a model that writes about images, of a run or of a Hugging Face folder."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from foveate.tasks.start.parts import FINE_TUNING, IMAGE_ENCODER_HELP, AllWeights, InitFrom, RunOrEncoder, continues
from foveate.training import Training

FAMILY = "vision-encoder-decoder"

WRITER_HELP = (
    "or all weights of a Hugging Face folder of a model that writes about images, such as a TrOCR, a Donut, a ViT with "
    "a GPT-2 or a BLIP, with its tokenizer and the size of its images."
)


@dataclass(frozen=True)
class ImageWriter(AllWeights):
    """All weights of a run of the same task or of a folder, with what it reads and writes."""

    help: ClassVar[str] = f"Begin with all weights of this run of the same task, {WRITER_HELP}"
    folders: bool = True

    def complete(self, recipe: Any) -> None:
        super().complete(recipe)
        if recipe.weights.run is None and recipe.weights.family == FAMILY:
            writes = recipe.recipe.writes
            if writes.decoding == type(writes)().decoding:
                recipe.recipe.writes = replace(writes, decoding=self._forms(recipe).writes.decoding)

    def training(self, recipe: Any) -> Training | None:
        """A run goes on as it was trained; a folder is adapted at a low rate."""
        return replace(FINE_TUNING) if recipe.weights.run is None else None

    def tokenizer(self, recipe: Any) -> None:
        """None: it belongs to what is written."""

    def processor(self, recipe: Any, kind: Any) -> Any:
        return super().processor(recipe, kind) if recipe.weights.run is not None else self._forms(recipe)

    @staticmethod
    def _forms(recipe: Any) -> Any:
        from foveate.tasks.hf.image_forms import forms_of

        return forms_of(recipe.weights.folder, recipe.weights.config, recipe.recipe.task)


@dataclass(frozen=True)
class ImageWriterOrEncoder(RunOrEncoder):
    """All weights of a run of the same task or of a folder, or the image encoder of another model."""

    help: ClassVar[str] = f"{IMAGE_ENCODER_HELP} Or begin with all weights of a run of the same task, {WRITER_HELP}"
    run: AllWeights = field(default_factory=ImageWriter)

    def _of(self, recipe: Any) -> InitFrom:
        return self.run if continues(recipe) or recipe.weights.family == FAMILY else self.body
