"""Sound classification: a sound gets one of several labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from foveate.baselines.sound_probe import labels_by_loudness
from foveate.data.sounds.labelled import labelled_sounds
from foveate.forms.label import Label
from foveate.forms.sound import SoundClip
from foveate.forms.sound_files import choose_log_mel
from foveate.forms.waves import WavesClip
from foveate.models.speech.wav2vec2 import Wav2Vec2Config
from foveate.tasks.labeller import Labeller
from foveate.tasks.recipe import FileTable
from foveate.tasks.start.sounds import SoundBody
from foveate.tasks.task import Task
from foveate.training import CrossEntropy, Training


class SoundClassifier(Labeller):
    """A classifier of sounds."""

    def simple_ways(
        self, known: Sequence[Any], labels: Sequence[Sequence[str]], asked: Sequence[Any]
    ) -> Mapping[str, Sequence[Sequence[str]]]:
        """The label of the training sound whose bands are as loud, and a linear classifier of how loud they are."""
        log_mel = choose_log_mel(known[0].rate, None, None)
        return labels_by_loudness(asked, known, labels, log_mel, self.processor.writes.several)


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
    examples=FileTable(batch=64),
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
    skill=lambda: SoundClassifier,
)
