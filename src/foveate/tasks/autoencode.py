"""Auto-encoding: a sentence, or a paragraph sentence by sentence, is read into a vector and written again from it."""

from typing import Any

from foveate.forms.rewriting import ReadPassage, Rewritten
from foveate.tasks.examples.prose import arrange_prose, read_prose
from foveate.tasks.recipe import TableExamples
from foveate.tasks.start.parts import AllWeights
from foveate.tasks.task import Task
from foveate.training import CrossEntropy, Training


def _autoencoder() -> Any:
    from foveate.tasks.autoencoder import Autoencoder

    return Autoencoder


TASK = Task(
    name="autoencode",
    about="Train an auto-encoder: to read a sentence, or a paragraph sentence by sentence, into a vector, and to write "
    "it again from that.",
    families=("rnn-autoencoder", "hierarchical-autoencoder"),
    reads=ReadPassage(),
    writes=Rewritten(),
    objective=CrossEntropy(),
    read=read_prose,
    arrange=arrange_prose,
    files="FILE ...",
    layout="Your own prose: plain text files (or .gz) or folders of .txt and .txt.gz files; empty lines part "
    "paragraphs; or tables with a column of texts.",
    examples=TableExamples(batch=2048, validation_examples=200),
    model="rnn-autoencoder",
    training=Training(warmup=200),
    start=AllWeights(),
    skill=_autoencoder,
)
