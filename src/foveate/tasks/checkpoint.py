"""Models of Hugging Face folders as skills: built from the folder's own config, whatever its sizes."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from foveate.errors import UserError
from foveate.forms.foreign_boxes import ForeignBoxes
from foveate.forms.image_vector import ImageVector
from foveate.forms.label import Label
from foveate.forms.processor import Processor
from foveate.forms.public_image import PublicImage
from foveate.interop.layout import label_names, label_scores
from foveate.interop.preprocessors import OF_IMAGES, read_preprocessor
from foveate.interop.public_folder import PublicModel, layout_of
from foveate.interop.through_transformers import OF_IMAGES as IMAGE_HEADS
from foveate.interop.through_transformers import head_of_any, is_ours, read_any
from foveate.interop.transformers_models import ImageObjects
from foveate.tasks import find_task
from foveate.tasks.recipe import Recipe
from foveate.tasks.run_config import RunConfig
from foveate.tasks.skill import Skill, skill_class
from foveate.tasks.task import Task
from foveate.training.hardware import choose_device

IMAGE_TASKS = {
    "label": "classify-image",
    "none": "classify-image",
    "image": "classify-image",
    "boxes": "detect",
    "match": "match-image",
}
"""The task of a model that reads images, by what it predicts."""


def reads_images(folder: Path) -> bool:
    """Whether the model of a folder reads images."""
    try:
        if is_ours(folder):
            return bool(layout_of(folder).image_processor)
        return head_of_any(folder) in IMAGE_HEADS.values()
    except UserError:
        return False


class ImageFolders:
    """Opens folders whose models read images: what `foveate run` and `eval` ask of a task."""

    def __init__(self, folder: Path) -> None:
        self._task: Task = find_task(IMAGE_TASKS[head_of_any(folder)])

    def run_options(self, recipe: Any, where: str) -> Any:
        """The flags of `foveate run`."""
        return self._task.writes.run_options()

    def eval_options(self, recipe: Any, where: str) -> Any:
        """The flags of `foveate eval`."""
        return self._task.writes.measure_options()

    def load(self, folder: Path | str, device: str = "cpu") -> Skill:
        """The model of a folder. Raises UserError, one line, for whatever is missing, damaged or unknown."""
        folder, task = Path(folder), self._task
        public = read_any(folder)
        vectors = getattr(public.model.config, "head", None) in ("none", "image")
        writes = ImageVector() if vectors else _labels(public, folder, task)
        processor = Processor(_image(public, folder), writes)
        model = public.model.to(choose_device(device)).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        recipe = public_recipe(task, public, folder, processor)
        description = asdict(RunConfig(task.name, public.family, asdict(recipe.architecture), recipe.as_json()))
        return skill_class(task, processor)(task, recipe, model, processor, description, folder)


def public_recipe(task: Task, public: PublicModel, folder: Path, processor: Processor) -> Recipe:
    """A recipe that stands for the training of a model, of which only the result is known."""
    return Recipe(
        task=task.name,
        examples=replace(task.examples),
        reads=processor.reads,
        writes=processor.writes,
        objective=task.objective,
        model=public.family,
        out=folder,
        training=task.training,
        architecture=public.model.config,
    )


def _image(public: PublicModel, folder: Path) -> PublicImage:
    config: Any = public.model.config
    found = PublicImage.of_folder(folder, getattr(config, "image_size", 224), config.channels)
    sides = getattr(config, "image_sides", None)
    if sides is not None and config.head != "boxes" and read_preprocessor(folder, OF_IMAGES)[0] is None:
        found.height, found.width = sides
    return found


def _labels(public: PublicModel, folder: Path, task: Task) -> Any:
    where = str(folder / "config.json")
    names = label_names(public.values, where)
    writes: Any = replace(task.writes, labels=dict.fromkeys(names, 0))  # type: ignore[type-var]
    if isinstance(public.model, ImageObjects):
        return ForeignBoxes(**vars(writes))
    if isinstance(writes, Label):
        writes.scores = label_scores(public.values, len(names), where)
    return writes
