"""Tasks: one recipe each, which brings data, model, training, decoding and sight together."""

import importlib
from pathlib import Path
from typing import Any

from foveate import bundle
from foveate.errors import unknown

TASKS = {
    "translate": ("foveate.recipes.translate", "foveate.recipes.translator", "Translator"),
    "classify": ("foveate.recipes.classify", "foveate.recipes.classifier", "Classifier"),
    "tag": ("foveate.recipes.tag", "foveate.recipes.tagger", "Tagger"),
    "match": ("foveate.recipes.match", "foveate.recipes.matcher", "Matcher"),
    "autoencode": ("foveate.recipes.autoencode", "foveate.recipes.autoencoder", "Autoencoder"),
    "classify-image": ("foveate.recipes.classify_image", "foveate.recipes.image_classifier", "ImageClassifier"),
    "language": ("foveate.recipes.language", "foveate.recipes.author", "Author"),
}
"""Each task's recipe, and where the class is that a trained model of it is used by.

A recipe's module has a RECIPE, a subclass of `foveate.recipes.recipe.Recipe`, and `run(recipe, splits, console)`, which
trains it. The class is a `foveate.recipes.trained.Trained`.
"""


def load(folder: Path | str, device: str = "cpu") -> Any:
    """What was trained into a run folder, ready to `run`. Raises UserError, one line, for a folder that is damaged."""
    return trained_class(bundle.load(folder)).load(folder, device)


def train(recipe: Any) -> Any:
    """Train what a recipe says, such as `foveate.recipes.translate.Translate`; gives what `load` would give."""
    return importlib.import_module(type(recipe).__module__).run(recipe)


def recipe_module(task: str) -> Any:
    """The module of a task's recipe, by the task's name."""
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    return importlib.import_module(TASKS[task][0])


def trained_class(found: bundle.Bundle | None = None) -> Any:
    """The class that what was trained into a folder is used by; without a folder, that of the first task."""
    task = next(iter(TASKS)) if found is None else str(found.description.get("task"))
    if found is not None and task not in TASKS:
        raise unknown(f"task in {found.folder / bundle.CONFIG}", task, TASKS)
    _, module, name = TASKS[task]
    return getattr(importlib.import_module(module), name)
