"""Filling in words: a model learns to predict tokens that are hidden in running prose."""

from typing import Any

from foveate.forms.blanks import FilledBlanks, ReadBlanks
from foveate.tasks.examples.prose import arrange_prose, read_prose
from foveate.tasks.recipe import TableExamples
from foveate.tasks.start.parts import AllWeights
from foveate.tasks.task import Task
from foveate.training import CrossEntropy, Training


def _filler() -> Any:
    from foveate.tasks.filler import Filler

    return Filler


TASK = Task(
    name="cloze",
    about="""Train a model to fill in words that are hidden in running prose.

    BERT learns from hidden words (masked language model), XLNet from words in a random order (permutation language
    model), ELMo from the next and the previous word of every word (bidirectional language model).

    `foveate run RUN "Let's make [MASK] chicken!"` then names the best words for each [MASK].""",
    families=("bert", "deberta", "xlnet", "elmo"),
    reads=ReadBlanks(),
    writes=FilledBlanks(),
    objective=CrossEntropy(),
    read=read_prose,
    arrange=arrange_prose,
    files="FILE ...",
    layout="Your own prose: plain text files (or .gz) or folders of .txt files; empty lines part paragraphs; "
    "or tables with a column of texts.",
    examples=TableExamples(batch=4096, validation_examples=200),
    model="bert-tiny",
    training=Training(
        usual_epochs=10,
        learning_rate=1e-3,
        schedule="linear",
        usual_warmup=500,
        validate_every=500,
        save_every=500,
    ),
    start=AllWeights(folders=True),
    unit="hidden words",
    skill=_filler,
)
