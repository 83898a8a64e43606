"""Transcription: a model writes what is said in a sound, one character after the other."""

from foveate.data.sounds.labelled import labelled_sounds
from foveate.forms.sound import SpokenSound
from foveate.forms.transcripts import Transcript, why_too_long
from foveate.tasks.recipe import FileExamples
from foveate.tasks.skill import Skill
from foveate.tasks.start.parts import AllWeights
from foveate.tasks.task import Task
from foveate.training import Training
from foveate.training.objectives.joint_ctc import JointCTC


def _transcriber() -> type[Skill]:
    from foveate.tasks.transcriber import Transcriber

    return Transcriber


TASK = Task(
    name="transcribe",
    about="Train a model that writes what is said in sounds.",
    families=("las", "speech-transformer", "whisper"),
    reads=SpokenSound(),
    writes=Transcript(),
    objective=JointCTC(label_smoothing=0.05),
    read=lambda paths, recipe: labelled_sounds(paths, problem_of=why_too_long, spoken=True),
    files="TABLE",
    layout="Your own sounds: a table with sound<TAB>text on each line.",
    examples=FileExamples(batch=6000, validation_examples=200),
    model="las-tiny",
    training=Training(
        usual_epochs=20,
        schedule="cosine",
        usual_warmup=200,
        validate_every=300,
        save_every=300,
    ),
    start=AllWeights(grows="vocabulary"),
    unit="characters",
    skill=_transcriber,
)
