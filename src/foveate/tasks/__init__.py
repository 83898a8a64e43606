"""Tasks: one page each, which brings data, model, training, decoding and sight together."""

import importlib
from pathlib import Path
from typing import Any

from foveate import bundle
from foveate.errors import unknown
from foveate.interop.pretrained import locate
from foveate.interop.public_folder import is_public, model_type

TASKS: dict[str, tuple[str, ...]] = {
    "translate": ("foveate.tasks.translate", "foveate.tasks.translator", "Translator"),
    "classify": ("foveate.tasks.classify", "foveate.tasks.classifier", "Classifier"),
    "tag": ("foveate.tasks.tag", "foveate.tasks.tagger", "Tagger"),
    "match": ("foveate.tasks.match", "foveate.tasks.matcher", "Matcher"),
    "autoencode": ("foveate.tasks.autoencode", "foveate.tasks.autoencoder", "Autoencoder"),
    "cloze": ("foveate.tasks.cloze", "Cloze"),
    "language": ("foveate.tasks.language", "foveate.tasks.author", "Author"),
    "answer": ("foveate.tasks.answer", "AnswerTask"),
    "caption": ("foveate.tasks.caption", "CaptionTask"),
    "classify-image": ("foveate.tasks.classify_image", "ClassifyImage"),
    "read": ("foveate.tasks.read", "Read"),
    "walk": ("foveate.tasks.walk", "Walk"),
    "control": ("foveate.tasks.control", "Control"),
    "classify-sound": ("foveate.tasks.classify_sound", "ClassifySound"),
    "transcribe": ("foveate.tasks.transcribe", "Transcribe"),
    "reward": ("foveate.tasks.reward", "TrainReward"),
    "rlhf": ("foveate.tasks.rlhf", "TrainRLHF"),
    "detect": ("foveate.tasks.detect", "Detect"),
}
"""Each task's page and its class, a `foveate.tasks.task.Task`.

The tasks with three names are older: their module has a RECIPE, a subclass of `foveate.tasks.recipe.Recipe`, and
`run(recipe, splits, console)`, which trains it; the others name the class that a trained model is used by.
"""


def load(folder: Path | str, device: str = "cpu") -> Any:
    """A trained model, ready to `run`: of a run folder, a Hugging Face folder, or a name such as smollm2 or minilm.

    Raises UserError, one line, for a folder that is damaged, or holds a model that foveate does not have.
    """
    folder = locate(folder)
    return opener(folder).load(folder, device)


def opener(folder: Path) -> Any:
    """What loads the model of a folder, whoever wrote it."""
    if is_public(folder):
        if model_type(folder) in ("bert", "roberta"):
            from foveate.tasks import public_bert

            return public_bert.opener(folder)
        from foveate.tasks.completion.completer import Completer

        return Completer
    return trained_class(bundle.load(folder))


def train(recipe: Any) -> Any:
    """Train what the settings of a task say, such as `foveate.tasks.translate.Translate`; what `load` would give."""
    from foveate.tasks.task import Task

    if isinstance(recipe, Task):
        return recipe.learn()
    return importlib.import_module(type(recipe).__module__).run(recipe)


def task_class(task: str) -> Any:
    """The class of a task's settings, by the task's name."""
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    module, *names = TASKS[task]
    page = importlib.import_module(module)
    return getattr(page, names[0]) if len(names) == 1 else page.RECIPE


def trained_class(found: bundle.Bundle | None = None) -> Any:
    """What loads what was trained into a folder; without a folder, that of the first task."""
    task = next(iter(TASKS)) if found is None else str(found.description.get("task"))
    if found is not None and task not in TASKS:
        raise unknown(f"task in {found.folder / bundle.CONFIG}", task, TASKS)
    _, *names = TASKS[task]
    if len(names) == 1:
        from foveate.tasks.predictor import Predictors

        return Predictors(task_class(task))
    module, name = names
    return getattr(importlib.import_module(module), name)
