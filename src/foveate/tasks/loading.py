"""Opens what was trained, whoever trained it, and trains what settings say."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foveate import bundle
from foveate.errors import unknown
from foveate.interop.pretrained import locate
from foveate.interop.public_folder import header_of, is_public
from foveate.tasks import TASKS, task_class

if TYPE_CHECKING:
    from foveate.tasks.predictor import Predictor, Predictors
    from foveate.tasks.protocols import LoadedPredictor
    from foveate.tasks.task import Task
    from foveate.training import Callback


def load(folder: Path | str, device: str = "cpu") -> "LoadedPredictor":
    """A trained model, ready to `run`: of a run folder, a Hugging Face folder, a name such as smollm2 or minilm, or
    a model of the Hugging Face hub such as "hub:openai-community/gpt2", fetched once into the cache.

    Raises UserError, one line, for a folder that is damaged, or holds a model that foveate does not have.
    """
    folder = locate(folder)
    loaded: LoadedPredictor = opener(folder).load(folder, device)
    return loaded


def opener(folder: Path) -> Any:
    """What loads the model of a folder, whoever wrote it."""
    if is_public(folder):
        if header_of(folder).model_type in ("bert", "roberta"):
            from foveate.tasks.public import openers

            return openers.bert_opener(folder)
        if header_of(folder).model_type == "whisper":
            from foveate.tasks.public import whisper

            return whisper.opener(folder)
        from foveate.tasks.public import openers

        return openers.opener(folder)
    return predictors(bundle.load(folder))


def train(recipe: "Task[Any]", callbacks: "Sequence[Callback]" = ()) -> "Predictor":
    """Train what the settings of a task say, such as `foveate.tasks.translate.Translate`; what `load` would give.

    `callbacks` are functions that are called with each row of `metrics.jsonl`, a table of plain values: to draw curves,
    or to pass them to a tracker. One that fails is told of and not called again.
    """
    return recipe.learn(callbacks=callbacks)


def predictors(found: bundle.Bundle | None = None) -> "Predictors":
    """What loads what was trained into a folder; without a folder, that of the first task."""
    from foveate.tasks.predictor import Predictors

    task = next(iter(TASKS)) if found is None else str(found.description.get("task"))
    if found is not None and task not in TASKS:
        raise unknown(f"task in {found.folder / bundle.CONFIG}", task, TASKS)
    return Predictors(task_class(task))
