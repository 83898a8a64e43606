"""Opens what was trained, whoever trained it, and trains what settings say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from foveate import models, run_dir
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.errors import NoTokenizer, UserError, unknown
from foveate.forms.processor import Processor, load_processor
from foveate.interop.pretrained import locate
from foveate.interop.public_folder import header_of, is_public, reads_sounds
from foveate.interop.through_transformers import OF_SOUNDS, head_of_any
from foveate.tasks import TASKS, find_task
from foveate.tasks.recipe import Recipe
from foveate.tasks.run_config import describe, load_run
from foveate.tasks.skill import Skill, skill_class
from foveate.tasks.task import Task
from foveate.tasks.upgrade import upgrade_processor


def load(folder: Path | str, device: str = "cpu") -> Skill:
    """A trained model, ready to `run`: of a run folder, a Hugging Face folder, a name such as smollm2 or minilm, or
    a model of the Hugging Face hub such as "hub:openai-community/gpt2", fetched once into the cache. A Hugging Face
    folder without a tokenizer opens too, but answers no text.

    Raises UserError, one line, for a folder that is damaged, or holds a model that foveate does not have.
    """
    folder = locate(folder)
    try:
        loaded: Skill = opener(folder).load(folder, device)
    except NoTokenizer as reason:
        if not is_public(folder):
            raise
        from foveate.tasks.hf.model_alone import load_alone

        return load_alone(folder, device, str(reason))
    return loaded


def opener(folder: Path) -> Any:
    """What loads the model of a folder, whoever wrote it."""
    if is_public(folder):
        from foveate.tasks.checkpoint import ImageFolders, reads_images  # the forms of images start no run of texts

        seen = head_of_any(folder) if reads_images(folder) else None
        if seen == "match":
            from foveate.tasks.hf.matchers import MatcherFolders

            return MatcherFolders(folder)
        if seen == "words":
            from foveate.tasks.hf.image_writers import ImageWriterFolder

            return ImageWriterFolder(folder)
        if seen is not None:
            return ImageFolders(folder)
        if hears(folder):
            from foveate.tasks.hf.sounds import SoundFolders

            return SoundFolders(folder)
        from foveate.tasks.hf import openers

        return openers.opener(folder)
    run = run_dir.load(folder)
    if (task := str(run.description.get("task"))) not in TASKS:
        raise unknown(f"task in {run.folder / run_dir.CONFIG}", task, TASKS)
    return Runs(find_task(task))


def hears(folder: Path) -> bool:
    """Whether the model of a folder reads sounds."""
    if reads_sounds(header_of(folder).model_type):
        return True
    try:
        return head_of_any(folder) in OF_SOUNDS.values()
    except UserError:
        return False


def recipe(task: str, **settings: Any) -> Recipe:
    """The settings of a training: `recipe("classify-image", data="photos", size=64, epochs=5)`.

    A setting may be a field of any part of the recipe (docs/training.md lists them). Raises UserError, with the nearest
    names, for a task or a setting that does not exist.
    """
    return find_task(task).recipe(**settings)


@dataclass
class ProcessorOf:
    """Loads the processor of a run of a task."""

    task: Task

    def of_task(self, name: str) -> "ProcessorOf":
        """The same for another task."""
        return ProcessorOf(find_task(name))

    def load(self, folder: Path, recipe: Recipe | None = None) -> Processor:
        """The processor of a run folder, whose recipe may be known. Raises UserError for whatever is missing or
        damaged."""
        upgrade: Callable[[Path], Mapping[str, Any]] = lambda place: upgrade_processor(self.task.name, place)  # noqa: E731
        if recipe is None:
            recipe = self.task.from_json(describe(run_dir.load(folder)).recipe, str(folder / run_dir.CONFIG))
        return load_processor(type(recipe.reads), type(recipe.writes), folder, upgrade)


@dataclass(frozen=True)
class Runs:
    """Opens the run folders of one task."""

    task: Task

    def run_options(self, recipe: Mapping[str, Any], where: str) -> Any:
        """The flags of `foveate run`, with the defaults of a folder's recipe."""
        return self._writes(recipe, where).run_options()

    def eval_options(self, recipe: Mapping[str, Any], where: str) -> Any:
        """The flags of `foveate eval`, with the same defaults."""
        return self._writes(recipe, where).measure_options()

    def _writes(self, recipe: Mapping[str, Any], where: str) -> Any:
        return self.task.from_json(recipe, where).writes if recipe else self.task.writes

    def load(self, folder: Path | str, device: str = "cpu") -> Skill:
        """The model of a run folder. Raises UserError, one line, for whatever is missing or damaged."""
        found = load_run(folder, device)
        recipe = self.task.from_json(describe(found.files).recipe, found.where)
        saved = ProcessorOf(self.task).load(found.files.folder, recipe)
        processor = Processor(saved.reads.with_settings(recipe.reads), saved.writes.with_settings(recipe.writes))
        for name, size in processor.sizes().items():
            built = found.description.architecture.get(name, size)
            spare = name in models.VOCABULARIES and any(
                isinstance(getattr(form, "tokenizer", None), TextTokenizer) for form in (saved.reads, saved.writes)
            )
            if built < size if spare else built != size:
                raise UserError(
                    f"{found.where} has the {name} {built}, but the files beside it {size}: "
                    f"probably they are of two different models"
                )
        model = found.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        kind = skill_class(self.task, processor)
        skill = kind(self.task, recipe, model, processor, found.files.description, Path(folder))
        if hasattr(kind, "replier"):  # a `Chatting`
            from foveate.tasks.completion.chats import completer_of

            skill.replier = completer_of  # type: ignore[attr-defined]
        return skill
