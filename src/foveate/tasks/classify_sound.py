"""Sound classification: a sound gets one of several labels."""

from typing import Any

from foveate.data.sounds.labelled import labelled_sounds
from foveate.forms.label import Label
from foveate.forms.sound import SoundClip
from foveate.forms.waves import WavesClip
from foveate.models.speech.wav2vec2 import Wav2Vec2Config
from foveate.tasks.recipe import FileExamples
from foveate.tasks.start.sounds import SoundBody
from foveate.tasks.task import Task
from foveate.training import CrossEntropy, Training


def _forms_for(reads: Any, writes: Any, architecture: Any) -> tuple[Any, Any]:
    """A wav2vec 2.0 reads samples."""
    return (WavesClip().with_settings(reads) if isinstance(architecture, Wav2Vec2Config) else reads), writes


TASK = Task(
    name="classify-sound",
    about="Train a sound classifier, which gives a sound one of several labels.",
    families=("audio-transformer", "cnn", "resnet", "wav2vec2"),
    head="label",
    reads=SoundClip(),
    writes=Label(),
    forms_for=_forms_for,
    objective=CrossEntropy(label_smoothing=0.1),
    read=lambda paths, recipe: labelled_sounds(paths),
    files="FOLDER",
    layout="Your own sounds: a folder with one folder for each class, or a table with path<TAB>label on each line.",
    examples=FileExamples(batch=64),
    model="cnn-tiny",
    training=Training(
        usual_epochs=15,
        learning_rate=3e-3,
        schedule="cosine",
        usual_warmup=50,
        weight_decay=0.05,
        validate_every=100,
        save_every=100,
    ),
    start=SoundBody(),
    unit="sounds",
)
