"""Hugging Face folders of models that read sounds as skills: they write what is said, or give a label."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from foveate import run_dir
from foveate.errors import UserError
from foveate.forms.ctc import SpelledTranscript
from foveate.forms.label import Label
from foveate.forms.processor import Processor
from foveate.forms.sound import SoundClip
from foveate.forms.waves import SpokenWaves, WavesClip
from foveate.forms.whisper import WhisperSound, WhisperText
from foveate.interop.layout import label_names, label_scores
from foveate.interop.public_folder import header_of, read_values
from foveate.interop.through_transformers import head_of_any, read_any
from foveate.interop.transformers_models import ThroughTransformersConfig
from foveate.models.speech.wav2vec2 import Wav2Vec2Config
from foveate.models.speech.whisper import WhisperConfig
from foveate.tasks import find_task
from foveate.tasks.checkpoint import public_recipe
from foveate.tasks.run_config import RunConfig
from foveate.tasks.skill import Skill, skill_class
from foveate.training.hardware import choose_device

TASK_OF = {
    "words": "transcribe",
    "label": "classify-sound",
    "speech": "transcribe",
    "sound": "classify-sound",  # through transformers
}
"""The task of a model, by what it predicts."""


def read_form(folder: Path, config: Any, label: bool = False) -> Any:
    """How the model of a folder reads sounds, perhaps to `label` them. UserError for what foveate does not do."""
    if isinstance(config, WhisperConfig):
        return WhisperSound.of_folder(folder, config)
    if isinstance(config, Wav2Vec2Config | ThroughTransformersConfig):
        return WavesClip.of_folder(folder) if label else SpokenWaves.of_folder(folder)
    return SoundClip.of_folder(folder, config)


def written_form(folder: Path, config: Any) -> Any:
    """How the model of a folder writes what is said. Raises UserError for what is missing or damaged."""
    if isinstance(config, WhisperConfig):
        return WhisperText.of_folder(folder, config)
    return SpelledTranscript.of_folder(folder, config.vocabulary)


def label_form(folder: Path) -> Label:
    """The labels that a folder names."""
    values, where = read_values(folder), str(folder / run_dir.CONFIG)
    names = label_names(values, where)
    return Label(dict.fromkeys(names, 0), scores=label_scores(values, len(names), where))


class SoundFolders:
    """Opens folders whose models read sounds: what `foveate run` and `eval` ask of a task."""

    def __init__(self, folder: Path) -> None:
        """Raises UserError for a model that predicts nothing."""
        head = head_of_any(folder)
        if head not in TASK_OF:
            raise UserError(
                f"{folder} is a {(header_of(folder).architectures or ('body',))[0]}, which predicts nothing: "
                "train one with --from"
            )
        self._task = find_task(TASK_OF[head])
        self._writes: Any = {"whisper": WhisperText}.get(str(header_of(folder).model_type), SpelledTranscript)()
        if self._task.name == TASK_OF["label"]:
            self._writes = Label()

    def run_options(self, recipe: Any, where: str) -> Any:
        """The flags of `foveate run`."""
        return self._writes.run_options()

    def eval_options(self, recipe: Any, where: str) -> Any:
        """The flags of `foveate eval`."""
        return self._writes.measure_options()

    def load(self, folder: Path | str, device: str = "cpu") -> Skill:
        """The model of a folder. Raises UserError, one line, for whatever is missing, damaged or unknown."""
        folder, task = Path(folder), self._task
        public = read_any(folder)
        config: Any = public.model.config
        label = task.name == TASK_OF["label"]
        writes = label_form(folder) if label else written_form(folder, config)
        processor = Processor(read_form(folder, config, label), writes)
        recipe = public_recipe(task, public, folder, processor)
        description = asdict(RunConfig(task.name, public.family, asdict(recipe.architecture), recipe.as_json()))
        model: Any = public.model.to(choose_device(device))
        return skill_class(task, processor)(task, recipe, model, processor, description, folder)
