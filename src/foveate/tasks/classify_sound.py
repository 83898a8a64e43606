"""Sound classification: a sound gets one of several labels."""

from foveate.data.sounds.labelled import labelled_sounds
from foveate.forms.label import Label
from foveate.forms.sound import SoundClip
from foveate.tasks.recipe import FileExamples
from foveate.tasks.task import Task
from foveate.training import CrossEntropy, Training

TASK = Task(
    name="classify-sound",
    about="Train a sound classifier, which gives a sound one of several labels.",
    families=("audio-transformer", "cnn", "resnet"),
    reads=SoundClip(),
    writes=Label(),
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
    unit="sounds",
)
