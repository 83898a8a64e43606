"""Classification: a whole text gets one of several labels."""

from foveate.data.text.labelled import LabelledText
from foveate.forms.label import Label
from foveate.forms.text import Text
from foveate.tasks.start.parts import LanguageModelBody
from foveate.tasks.task import Examples, Task
from foveate.training import CrossEntropy, Training

TASK = Task(
    name="classify",
    about="Train a classifier, which gives a whole text one of several labels.",
    families=("rnn-encoder", "transformer-encoder", "bert", "gpt", "gpt-neox", "llama", "xlnet"),
    head="text",
    reads=Text(),
    writes=Label(),
    objective=CrossEntropy(),
    read=lambda paths, recipe: LabelledText.from_paths(paths),
    files="FILE",
    layout="Your own text: a file with label<TAB>text on each line; plain or .gz.",
    examples=Examples(batch=2048),
    model="rnn-attentive-classifier",
    training=Training(
        usual_epochs=5,
        learning_rate=2e-3,
        schedule="linear",
        usual_warmup=100,
        validate_every=50,
        save_every=50,
    ),
    start=LanguageModelBody(),
    unit="texts",
)
