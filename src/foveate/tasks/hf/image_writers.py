"""Hugging Face folders of models that write about images: lines of text, documents, captions."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foveate.interop.public_folder import check_tokenizer, read_folder
from foveate.tasks import find_task
from foveate.tasks.checkpoint import public_recipe
from foveate.tasks.hf.image_forms import WRITES, forms_of, generation_of, task_of
from foveate.tasks.run_config import RunConfig
from foveate.tasks.skill import Skill, skill_class
from foveate.training.hardware import choose_device


class ImageWriterFolder:
    """Opens a folder: what `foveate run` and `eval` ask of a task."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.task = folder, task_of(folder)

    @property
    def _writes(self) -> Any:
        return WRITES[self.task](decoding=generation_of(self.folder).decoding)

    def run_options(self, recipe: Mapping[str, Any], where: str) -> Any:
        """The flags of `foveate run`, with the defaults of the folder."""
        return self._writes.run_options()

    def eval_options(self, recipe: Mapping[str, Any], where: str) -> Any:
        """The flags of `foveate eval`, with the same defaults."""
        return self._writes.measure_options()

    def load(self, folder: Path | str, device: str = "cpu") -> Skill:
        """The model of a folder. Raises UserError, one line, for whatever is missing, damaged or unknown."""
        folder, task = Path(folder), find_task(self.task)
        public = read_folder(folder)
        processor = forms_of(folder, public.model.config, self.task, public=True)
        check_tokenizer(processor.writes.tokenizer.largest, public.model)
        recipe = public_recipe(task, public, folder, processor)
        description = asdict(RunConfig(task.name, public.family, asdict(recipe.architecture), recipe.as_json()))
        model = public.model.to(choose_device(device))
        return skill_class(task, processor)(task, recipe, model, processor, description, folder)
