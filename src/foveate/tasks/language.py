"""Language models: the next word of running prose, to write it and to go on from a beginning."""

from typing import Any

from foveate.forms.language import Continuation, ReadBeginning
from foveate.models.text import CAUSAL
from foveate.tasks.examples.prose import arrange_prose, read_prose_or_conversations
from foveate.tasks.recipe import TableExamples
from foveate.tasks.start.parts import AllWeights
from foveate.tasks.task import Task
from foveate.training import CrossEntropy, Training


def _language_model() -> Any:
    from foveate.tasks.language_model import LanguageModel

    return LanguageModel


TASK = Task(
    name="language",
    about="Train a language model on running prose: to write it, and to go on from a beginning. With a model such as "
    "rnn-conditioned, it is told of each passage what kind of text it is of: the decade of an address, or of your own "
    "files the name.",
    families=("rnn-language", *CAUSAL),
    head="words",
    reads=ReadBeginning(),
    writes=Continuation(),
    objective=CrossEntropy(),
    read=read_prose_or_conversations,
    arrange=arrange_prose,
    files="FILE ...",
    layout="Your own prose: plain text files (or .gz) or folders of .txt and .txt.gz files; empty lines part "
    'paragraphs; or tables with a column of texts, such as JSON lines of {"text": ...}. Or conversations, whose '
    "answers alone are learned: JSON lines with messages, begun --from a model with a chat template.",
    examples=TableExamples(batch=2048, validation_examples=200),
    model="rnn-language",
    training=Training(learning_rate=2e-3, usual_warmup=200),
    start=AllWeights(fine_tuned=True, folders=True),
    skill=_language_model,
)
