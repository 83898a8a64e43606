"""Transcription: a model writes what is said in a sound, one character after the other."""

from typing import Any

from foveate.data.sounds.labelled import labelled_sounds
from foveate.data.sounds.layouts import SPOKEN
from foveate.forms.ctc import SpelledTranscript
from foveate.forms.sound import SpokenSound
from foveate.forms.transcripts import Transcript, why_too_long
from foveate.forms.waves import SpokenWaves
from foveate.forms.whisper import WhisperSound, WhisperText
from foveate.forms.whisper_frames import WhisperFrames
from foveate.models.speech.las import PYRAMID
from foveate.models.speech.wav2vec2 import Wav2Vec2Config
from foveate.models.speech.whisper_ctc import WhisperCTCConfig
from foveate.tasks.recipe import FileTable
from foveate.tasks.skill import Skill
from foveate.tasks.start.sounds import HeardOrListener
from foveate.tasks.task import Task
from foveate.training import Training
from foveate.training.objectives.joint_ctc import JointCTC


def _transcriber() -> type[Skill]:
    from foveate.tasks.transcriber import Transcriber

    return Transcriber


def _forms_for(reads: Any, writes: Any, architecture: Any) -> tuple[Any, Any]:
    """A wav2vec 2.0 reads samples and spells by CTC; a Whisper that others trained reads windows and writes tokens.
    What listens with the encoder of one reads its spectrograms."""
    own: tuple[Any, Any] = type(reads), type(writes)
    if isinstance(architecture, Wav2Vec2Config):
        own = SpokenWaves, SpelledTranscript
    elif getattr(architecture, "windows", False):
        own = WhisperSound, WhisperText
    elif isinstance(architecture, WhisperCTCConfig):
        own = WhisperFrames, SpelledTranscript
    elif getattr(architecture, "listener", PYRAMID) != PYRAMID:
        own = WhisperFrames, type(writes)
    return own[0]().with_settings(reads), own[1]().with_settings(writes)


TASK = Task(
    name="transcribe",
    about="Train a model that writes what is said in sounds.",
    families=("las", "speech-transformer", "whisper", "wav2vec2", "whisper-ctc"),
    head="words",
    reads=SpokenSound(),
    writes=Transcript(),
    objective=JointCTC(label_smoothing=0.05),
    forms_for=_forms_for,
    read=lambda paths, recipe: labelled_sounds(paths, problem_of=why_too_long, spoken=True),
    files="TABLE",
    layout="Your own sounds: a table with sound<TAB>text on each line.",
    layouts=SPOKEN,
    examples=FileTable(batch=6000, validation_examples=200),
    model="las-tiny",
    training=Training(
        usual_epochs=20,
        schedule="cosine",
        usual_warmup=200,
        validate_every=300,
        save_every=300,
    ),
    start=HeardOrListener(),
    unit="characters",
    skill=_transcriber,
)
